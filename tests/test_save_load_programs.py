"""Programs saved and loaded: files of all kinds, further files, several programs in one archive."""

from __future__ import annotations

import contextlib
import gzip
import io
import logging
import tarfile
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pt2wire
import pytest
import torch
from pt2wire import DeserializeError
from torch.export import Dim

from .helpers.archives import (
    INPUT,
    assert_computes_the_same,
    linear_archive,
    linear_program,
    saved,
    torch_saved,
)
from .helpers.exporting import exported
from .helpers.models import MODELS
from .helpers.programs import assert_same_program


def test_warnings_point_at_the_line_that_called(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pt2wire.save(linear_program(), tmp_path / "name", extra_files={"a": "", "A": ""})  # this line
    assert len(caught) == 2
    for warning in caught:
        assert warning.filename == __file__
        assert "# this line" in Path(__file__).read_text().splitlines()[warning.lineno - 1]


def test_warnings_from_below_what_python_decorates_point_there_too() -> None:
    ep = exported(lambda self, x: (x.shape[0] > 3, x), torch.ones(4), shapes=({0: Dim.AUTO},))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pt2wire.save({"one": ep, "two": ep}, io.BytesIO())  # this line
        pt2wire.save(ep, io.BytesIO())  # this line
        pt2wire.serialize(ep)  # this line
        pt2wire.to_tree(ep)  # this line
        with contextlib.ExitStack() as stack:
            stack.callback(pt2wire.to_tree, ep)
            stack.close()  # this line
    texts = [
        str(warning.message).partition("torch.export.load will refuse this program") for warning in caught
    ]
    assert [begin for begin, found, _ in texts if found] == ["one: ", "two: ", "model: ", "", "", ""]
    for warning in caught:
        assert warning.filename == __file__
        assert "# this line" in Path(__file__).read_text().splitlines()[warning.lineno - 1]


@pytest.fixture
def nothing() -> Iterator[Any]:
    """An operator that gives a list of no tensors."""
    library = torch.library.Library("pt2wire_nothing", "DEF")
    library.define("nothing(Tensor x) -> Tensor[]")
    library.impl("nothing", lambda x: [], "CompositeExplicitAutograd")
    torch.library.register_fake("pt2wire_nothing::nothing", lambda x: [], lib=library)
    yield torch.ops.pt2wire_nothing.nothing.default
    library._destroy()


@pytest.mark.parametrize(
    ("forward", "told"),
    [
        (lambda nothing, x: (x + 1, "text"), "a text as an output"),
        (lambda nothing, x: (nothing(x), x + 1), "an empty list as the result of `nothing`"),
    ],
    ids=["text", "empty list"],
)
def test_a_warning_tells_what_pytorch_will_refuse(nothing: Any, forward: Any, told: str) -> None:
    ep, file = exported(lambda self, x: forward(nothing, x), torch.ones(4)), io.BytesIO()
    with pytest.warns(UserWarning, match=f"^model: torch.export.load will refuse this program, .*: {told}$"):
        pt2wire.save(ep, file)
    assert_same_program(ep, pt2wire.load(file))
    with pytest.raises(RuntimeError, match="error when deserializing"):
        torch.export.load(file)


# Paths and file objects.


def test_paths_of_all_kinds_and_file_objects_of_all_kinds_load(tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    pt2wire.save(linear_program(), path)
    assert_computes_the_same(pt2wire.load(path))
    assert_computes_the_same(pt2wire.load(str(path)))
    with open(path, "rb") as file:
        assert_computes_the_same(pt2wire.load(file))
    with open(path, "rb", buffering=0) as file:
        assert_computes_the_same(pt2wire.load(file))
    with tempfile.NamedTemporaryFile(suffix=".pt2") as wrapped:
        pt2wire.save(linear_program(), wrapped)
        assert_computes_the_same(pt2wire.load(wrapped))
        assert_computes_the_same(torch.export.load(wrapped.name))


def test_a_file_object_is_read_from_its_position_on(tmp_path: Path) -> None:
    path = tmp_path / "two"
    path.write_bytes(b"header" + linear_archive())
    for file in (open(path, "rb"), io.BytesIO(b"header" + linear_archive())):  # noqa: SIM115
        with file:
            file.seek(6)
            assert_computes_the_same(pt2wire.load(file))


def test_what_a_longer_file_object_held_behind_the_archive_is_cut_off(tmp_path: Path) -> None:
    buffer = io.BytesIO(b"z" * 50_000)
    buffer.seek(10)
    pt2wire.save(linear_program(), buffer)
    assert buffer.getvalue() == b"z" * 10 + linear_archive()
    assert_computes_the_same(pt2wire.load(buffer))
    path = tmp_path / "m.pt2"
    path.write_bytes(b"z" * 50_000)
    with open(path, "r+b") as file:
        pt2wire.save(linear_program(), file)
    assert path.read_bytes() == linear_archive()
    longer = bytearray(50_000)
    longer[: len(linear_archive())] = linear_archive()
    with pytest.raises(DeserializeError, match="If it was written over a longer file, save to an empty one"):
        pt2wire.load(io.BytesIO(longer))


class _Inverted(io.FileIO):
    """A file that gives the complement of each byte."""

    def read(self, size: int | None = -1, /) -> bytes:
        return bytes(byte ^ 0xFF for byte in super().read(-1 if size is None else size) or b"")

    def readinto(self, buffer: Any, /) -> int:
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)


class _InvertedBytes(io.BytesIO):
    """Memory that gives the complement of each byte."""

    def read(self, size: int | None = -1, /) -> bytes:
        return bytes(byte ^ 0xFF for byte in super().read(size))


class _MadeOfAnother:
    """What reads one archive, and holds the file of another one."""

    def __init__(self, path: Path) -> None:
        self.file = open(path, "rb")  # noqa: SIM115
        self.read = io.BytesIO(linear_archive()).read


def _in_a_tar(path: Path) -> IO[bytes]:
    with tarfile.open(path, "w") as tar:
        described = tarfile.TarInfo("m.pt2")
        described.size = len(linear_archive())
        tar.addfile(described, io.BytesIO(linear_archive()))
    member = tarfile.open(path).extractfile("m.pt2")  # noqa: SIM115
    assert member is not None
    return member


def _compressed(path: Path) -> gzip.GzipFile:
    path.write_bytes(gzip.compress(linear_archive()))
    return gzip.open(path)


def _inverted(path: Path) -> Path:
    path.write_bytes(bytes(byte ^ 0xFF for byte in linear_archive()))
    return path


def _another(path: Path) -> Path:
    pt2wire.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), path)
    return path


@pytest.mark.parametrize(
    "opened",
    [
        _compressed,
        lambda path: io.BufferedReader(_compressed(path)),  # type: ignore[type-var]
        _in_a_tar,
        lambda path: _Inverted(_inverted(path)),
        lambda path: io.BufferedReader(_Inverted(_inverted(path))),
        lambda path: _InvertedBytes(_inverted(path).read_bytes()),
        lambda path: _MadeOfAnother(_another(path)),
    ],
    ids=["gzip", "buffered gzip", "tar", "inverted", "buffered inverted", "inverted bytes", "another's file"],
)
def test_of_a_file_object_its_own_bytes_are_read(opened: Callable[[Path], Any], tmp_path: Path) -> None:
    assert_computes_the_same(pt2wire.load(opened(tmp_path / "file")))


def test_saving_over_the_file_that_is_mapped_keeps_the_loaded_program(tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    pt2wire.save(linear_program(), path)
    loaded = pt2wire.load(path)
    for _ in range(2):
        pt2wire.save(loaded, path)
        loaded = pt2wire.load(path)
    assert_computes_the_same(loaded)
    assert path.read_bytes() == linear_archive()


# Extra files, as torch.export.save and load treat them.


def test_extra_files_go_both_ways_and_fill_the_callers_dict() -> None:
    extra = {"a.txt": "text", "folder/b.json": '{"ä": 1}'}
    for data in (
        saved(linear_program(), extra_files=extra),
        torch_saved(linear_program(), extra_files=extra),
    ):
        for load in (pt2wire.load, torch.export.load):
            found = {"a.txt": "", "untouched": "mine"}
            load(io.BytesIO(data), extra_files=found)
            assert found == {**extra, "untouched": "mine"}
    assert pt2wire.read(io.BytesIO(data)).extra_files["folder/b.json"] == '{"ä": 1}'.encode()


def test_extra_files_whose_names_differ_in_case_only_are_kept_apart() -> None:
    found: dict[str, Any] = {}
    pt2wire.load(io.BytesIO(saved(linear_program(), extra_files={"a": "1", "A": "2"})), extra_files=found)
    assert found == {"a": "1", "A": "2"}


def test_extra_files_that_are_no_text_come_back_as_bytes() -> None:
    found: dict[str, Any] = {}
    with pytest.warns(
        UserWarning, match=r"extra_files\['raw'\]: torch\.export\.load will refuse the archive"
    ):
        data = saved(linear_program(), extra_files={"raw": b"\xff\x00", "text": "a"})
    pt2wire.load(io.BytesIO(data), extra_files=found)
    assert found == {"raw": b"\xff\x00", "text": "a"}
    with pytest.raises(UnicodeDecodeError):  # also where nobody asks for them
        torch.export.load(io.BytesIO(data))


# Several programs.


def test_several_programs_load_one_by_one_or_all() -> None:
    programs = {"b": MODELS["keyword_arguments"].program(), "a": linear_program()}
    data = saved(programs)
    assert list(pt2wire.load_all(io.BytesIO(data))) == ["b", "a"]
    assert_computes_the_same(pt2wire.load(io.BytesIO(data), name="a"))
    args, kwargs = MODELS["keyword_arguments"].make_inputs()
    found = pt2wire.load(io.BytesIO(data), name="b").module()(*args, **kwargs)
    assert torch.equal(found, programs["b"].module()(*args, **kwargs))


class Applied(torch.nn.Module):
    def forward(self, x: torch.Tensor, module: torch.nn.Module) -> torch.Tensor:
        return module(x) + 1


@pytest.mark.parametrize("module", [torch.nn.ReLU(), torch.nn.Linear(2, 2)], ids=["empty", "weights"])
def test_modules_among_inputs_come_with_the_pickled_example_inputs(module: torch.nn.Module) -> None:
    inputs = torch.ones(2), module
    ep = torch.export.export(Applied(), inputs)
    with pytest.warns(UserWarning, match=r"^model: PyTorch can load .*, pt2wire will not: .*a class that"):
        data = saved(ep)
    for file in (data, torch_saved(ep)):
        message = (
            f"expected a class that is registered .*Pass types=.{type(module).__name__}. .* allow_pickle"
        )
        with pytest.raises(pt2wire.DeserializeError, match=message):
            pt2wire.load(io.BytesIO(file))
        for options in ({"types": [type(module)]}, {"allow_pickle": True}):
            loaded = pt2wire.load(io.BytesIO(file), **options)  # type: ignore[arg-type]
            assert torch.equal(loaded.module()(*inputs), ep.module()(*inputs))
        with pytest.warns(UserWarning, match="pt2wire will not"):
            assert pt2wire.to_tree(loaded) == pt2wire.to_tree(ep) and saved(loaded)
    again = pt2wire.from_tree(pt2wire.to_tree(ep), {}, {}, example_inputs=(inputs, {}))
    assert torch.equal(again.module()(*inputs), ep.module()(*inputs))
    # Outside of all that, a module is a leaf to pytree as before.
    assert torch.utils._pytree.tree_leaves(module) == [module]
    logging.disable()  # PyTorch's warning about pickles of classes has a broken format, which pytest reports
    try:
        assert torch.equal(torch.export.load(io.BytesIO(data)).module()(*inputs), ep.module()(*inputs))
    finally:
        logging.disable(logging.NOTSET)


def test_an_error_in_one_of_several_programs_names_it() -> None:
    broken = torch.export.export(torch.nn.Linear(4, 3), (INPUT,))
    broken.constants["odd"] = object()
    with pytest.raises(pt2wire.SerializeError, match="second:odd: cannot save a constant that is neither"):
        saved({"first": linear_program(), "second": broken})


# Which weights are one object, and which only lie in one memory. PyTorch's files do not tell, and give
# buffers that lie with parameters a gradient.


class _Alike(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        base, table = torch.randn(3), torch.ones(3)
        self.first, self.second = torch.nn.Parameter(base), torch.nn.Parameter(base)
        self.second_again, self.first_again = self.second, self.first
        self.register_buffer("plain", base)
        self.register_buffer("with_gradient", base.detach().requires_grad_())
        for name in ("kept", "kept_too"):
            self.register_buffer(name, base[:])
        for name in ("hidden", "hidden_too"):
            self.register_buffer(name, base[:], persistent=False)
        self.table, self.table_too, self.table_again = table, table[:], table

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for value in (*self.parameters(), *self.buffers(), self.table, self.table_too, self.table_again):
            x = x * value
        return x * self.first_again * self.second_again


def _objects(ep: torch.export.ExportedProgram) -> dict[str, tuple[int, bool]]:
    """By name which object it is, as the number of the first one with it, and whether it wants a gradient."""
    held = {**ep.state_dict, **ep.constants}
    numbers: dict[int, int] = {}
    return {
        name: (numbers.setdefault(id(value), len(numbers)), value.requires_grad)
        for name, value in held.items()
    }


@pytest.mark.parametrize("mmap", [True, False])
def test_weights_that_are_alike_are_as_many_objects_as_they_were(mmap: bool) -> None:
    ep = torch.export.export(_Alike(), (torch.ones(3),))
    objects = _objects(ep)
    assert len(objects) - len({number for number, _ in objects.values()}) == 3  # those that are `again`
    once = pt2wire.load(io.BytesIO(saved(ep)), mmap=mmap)
    twice = pt2wire.load(io.BytesIO(saved(once)), mmap=mmap)
    assert _objects(once) == _objects(twice) == objects
    module = once.module()
    module.first.requires_grad_(False)  # type: ignore[union-attr,operator]
    assert module.second.requires_grad
    assert len(list(module.parameters())) == len(list(ep.module().parameters())) == 2


class _Empty(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("a", torch.empty(0))
        self.register_buffer("b", torch.empty(0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.a.resize_(2).fill_(1)
        self.b.resize_(2).fill_(7)
        return self.a + x


def test_buffers_without_elements_grow_apart() -> None:
    ep = torch.export.export(_Empty(), (torch.ones(2),))
    loaded = pt2wire.load(io.BytesIO(saved(ep)))
    assert torch.equal(loaded.module()(torch.ones(2)), ep.module()(torch.ones(2)))
