"""Wrong arguments, wrong files, no room: one clear error each, which says what to do."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire import DeserializeError, Limits, SerializeError, UnsafeArtifactError
from torch.export.pt2_archive._package import load_pt2, package_pt2

from .helpers.archives import (
    INPUT,
    linear_archive,
    linear_program,
    linear_torch_archive,
    pickled,
    saved,
    with_records,
)

READERS: dict[str, Callable[[Any], Any]] = {
    "load": pt2wire.load,
    "load_all": pt2wire.load_all,
    "read": pt2wire.read,
}


@pytest.fixture(params=READERS.values(), ids=READERS)
def reader(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    return request.param  # type: ignore[no-any-return]


def test_example_inputs_of_another_program_are_refused() -> None:
    ep = linear_program()
    with pytest.raises(DeserializeError, match="expected example inputs of 1 values, found 2"):
        pt2wire.from_tree(pt2wire.to_tree(ep), ep.state_dict, {}, example_inputs=((1,), {"x": 2}))


_LONG = "x" * 100_000


@pytest.mark.parametrize(
    "call",
    [
        lambda: pt2wire.load(io.BytesIO(linear_archive()), form=_LONG),  # type: ignore[arg-type]
        lambda: pt2wire.load(io.BytesIO(linear_archive()), name=_LONG),
        lambda: pt2wire.save(linear_program(), io.BytesIO(), formats=(_LONG,)),  # type: ignore[arg-type]
        lambda: pt2wire.save(linear_program(), io.BytesIO(), extra_files={_LONG: 3}),  # type: ignore[dict-item]
        lambda: pt2wire.save(linear_program(), io.BytesIO(), opset_version={_LONG: _LONG}),  # type: ignore[dict-item]
    ],
    ids=["form", "name", "formats", "extra_files", "opset_version"],
)
def test_long_values_are_shown_in_part(call: Callable[[], Any]) -> None:
    with pytest.raises((TypeError, ValueError, DeserializeError), match=r"expected .* found") as caught:
        call()
    assert "'xxxx" in str(caught.value)
    assert len(str(caught.value)) < 400


def test_an_empty_path_is_no_folder() -> None:
    with pytest.raises(FileNotFoundError, match="No such file or directory: ''"):
        pt2wire.save(linear_program(), "")


# Arguments of a wrong type: TypeError.


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: pt2wire.to_json(linear_program()),  # type: ignore[arg-type]
            "expected a tree, an ExportedProgram of pt2wire.generated, found ExportedProgram of torch",
        ),
        (
            lambda: pt2wire.to_thrift(None),  # type: ignore[arg-type]
            "expected a tree, an ExportedProgram of pt2wire.generated, found NoneType of builtins",
        ),
        (
            lambda: pt2wire.from_json(linear_program()),  # type: ignore[arg-type]
            "expected a program as text or bytes, found ExportedProgram",
        ),
        (
            lambda: pt2wire.from_thrift("text"),  # type: ignore[arg-type]
            "expected a program as bytes, found str",
        ),
        (
            lambda: pt2wire.from_tree(linear_program(), {}, {}),  # type: ignore[arg-type]
            "expected a tree, an ExportedProgram of pt2wire.generated, found ExportedProgram of torch",
        ),
        (
            lambda: pt2wire.from_tree(pt2wire.to_tree(linear_program()), None, {}),  # type: ignore[arg-type]
            "expected weights as tensors by name, found NoneType",
        ),
        (
            lambda: pt2wire.from_tree(pt2wire.to_tree(linear_program()), {"weight": 3}, {}),  # type: ignore[dict-item]
            "expected weights['weight'] as a tensor or payload, found int of builtins",
        ),
        (
            lambda: pt2wire.from_tree(
                pt2wire.to_tree(linear_program()),
                linear_program().state_dict,
                {},
                example_inputs=(torch.ones(2),),  # type: ignore[arg-type]
            ),
            "expected example inputs as a tuple of positional and a dict of keyword arguments",
        ),
        (
            lambda: pt2wire.load(io.BytesIO(linear_archive()), expected_digest=3),  # type: ignore[arg-type]
            "expected expected_digest as text, found int",
        ),
        (
            lambda: pt2wire.load(io.TextIOWrapper(io.BytesIO(linear_archive()))),  # type: ignore[arg-type]
            "expected a file object opened in binary mode, found one in text mode",
        ),
        (
            lambda: pt2wire.load(linear_program()),  # type: ignore[arg-type]
            "expected a path or a binary file object, found ExportedProgram",
        ),
        (
            lambda: pt2wire.load(linear_archive()),  # type: ignore[arg-type]
            "expected a path or a binary file object, found bytes",
        ),
        (
            lambda: pt2wire.load(io.StringIO("PK")),  # type: ignore[arg-type]
            "expected a file object opened in binary mode",
        ),
        (
            lambda: pt2wire.load(io.BytesIO(linear_archive()), extra_files=["a.txt"]),  # type: ignore[arg-type]
            "expected a dict that is filled with extra files, found list",
        ),
        (
            lambda: pt2wire.save("m.pt2", linear_program()),  # type: ignore[arg-type]
            "expected the program first and the file second: save(ep, f)",
        ),
        (
            lambda: pt2wire.save(torch.nn.Linear(2, 2), "m.pt2"),  # type: ignore[arg-type]
            "expected an ExportedProgram of torch, or a dict of them by name, found Linear",
        ),
        (lambda: pt2wire.save({}, "m.pt2"), "expected at least one program, found an empty dict"),
        (
            lambda: pt2wire.save({"a": 1}, "m.pt2"),  # type: ignore[dict-item]
            "expected an ExportedProgram of torch as 'a', found int",
        ),
        (
            lambda: pt2wire.save({1: linear_program()}, "m.pt2"),  # type: ignore[dict-item]
            "expected the name of a program as a string, found int",
        ),
        (
            lambda: pt2wire.save(linear_program(), io.StringIO()),  # type: ignore[arg-type]
            "expected a file object opened in binary mode, found one in text mode",
        ),
        (
            lambda: pt2wire.save(linear_program(), 3),  # type: ignore[arg-type]
            "expected a path or a binary file object, found int",
        ),
        (
            lambda: pt2wire.save(linear_program(), io.BytesIO(), extra_files={"a": 1}),  # type: ignore[dict-item]
            "expected extra files as text or bytes by name, found 'a': int",
        ),
        (
            lambda: pt2wire.save(linear_program(), io.BytesIO(), extra_files=["a"]),  # type: ignore[arg-type]
            "expected extra files by name, found list",
        ),
        (
            lambda: pt2wire.write(linear_program(), io.BytesIO()),  # type: ignore[arg-type]
            "expected an Archive, found ExportedProgram",
        ),
        (
            lambda: pt2wire.to_tree(torch.nn.Linear(2, 2)),  # type: ignore[arg-type]
            "expected an ExportedProgram of torch, found Linear",
        ),
        (
            lambda: pt2wire.serialize(torch.nn.Linear(2, 2)),  # type: ignore[arg-type]
            "expected an ExportedProgram of torch, found Linear",
        ),
        (
            lambda: pt2wire.deserialize(b"{}"),  # type: ignore[arg-type]
            "expected a SerializedArtifact, whose exported_program is bytes, found bytes",
        ),
    ],
)
def test_a_wrong_type_is_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert message in str(caught.value)


_TO_TREE, _FROM_TREE = "pt2wire.to_tree makes a tree", "pt2wire.from_tree makes a program"


@pytest.mark.parametrize("name", ["digest", "canonicalize", "diff", "to_json", "from_tree", "validate"])
def test_a_program_in_place_of_a_tree_is_told_what_makes_one(name: str) -> None:
    ep = linear_program()
    rest = {"diff": (ep,), "from_tree": ({}, {})}.get(name, ())
    with pytest.raises(TypeError, match=f"found ExportedProgram of torch. {_TO_TREE}"):
        getattr(pt2wire, name)(ep, *rest)


@pytest.mark.parametrize("name", ["to_tree", "serialize", "save"])
def test_a_tree_in_place_of_a_program_is_told_what_makes_one(name: str) -> None:
    tree = pt2wire.to_tree(linear_program())
    rest = (io.BytesIO(),) if name == "save" else ()
    with pytest.raises(TypeError, match=f"found ExportedProgram of pt2wire. {_FROM_TREE}"):
        getattr(pt2wire, name)(tree, *rest)


def test_any_wrong_argument_of_any_function_is_refused_in_our_words() -> None:
    ep = linear_program()
    tree, archive, file = pt2wire.to_tree(ep), pt2wire.read(io.BytesIO(linear_archive())), io.BytesIO
    functions: dict[Callable[..., Any], tuple[Any, ...]] = {
        pt2wire.save: (ep, file()),
        pt2wire.load: (file(linear_archive()),),
        pt2wire.load_all: (file(linear_archive()),),
        pt2wire.read: (file(linear_archive()),),
        pt2wire.write: (archive, file()),
        pt2wire.serialize: (ep,),
        pt2wire.deserialize: (pt2wire.serialize(ep),),
        pt2wire.to_tree: (ep,),
        pt2wire.from_tree: (tree, ep.state_dict, ep.constants),
        pt2wire.to_json: (tree,),
        pt2wire.from_json: (pt2wire.to_json(tree),),
        pt2wire.to_thrift: (tree,),
        pt2wire.from_thrift: (pt2wire.to_thrift(tree),),
        pt2wire.canonicalize: (tree,),
        pt2wire.digest: (tree,),
        pt2wire.diff: (tree, tree),
        pt2wire.validate: (tree,),
        pt2wire.export_extern_kernels: ([],),
    }
    wrong = [None, 3, int, "no/such", b"x", [1], {1: 2}, {"a": 3}, object(), ep, tree, archive.weights]
    refused = 0
    for function, arguments in functions.items():
        names = list(inspect.signature(function).parameters)
        given = dict(zip(names, arguments, strict=False))
        for name in names:
            if function is pt2wire.from_tree and name in ("weights", "constants"):
                continue  # in PyTorch's words where tensors do not fit
            for value in wrong:
                if name == "device" and callable(value):
                    continue  # raises what the caller's own function does
                try:
                    function(**{**given, name: value})
                except (TypeError, ValueError, pt2wire.Pt2WireError) as error:
                    assert "expected" in str(error), (function.__name__, name, value)
                    refused += 1
                except FileNotFoundError:
                    assert value == "no/such"
    assert refused > 400


@pytest.mark.parametrize(
    ("limit", "error"), [("x", TypeError), (1.0, TypeError), (True, TypeError), (-1, ValueError)]
)
def test_limits_are_whole_numbers(limit: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="expected archive_entries"):
        Limits(archive_entries=limit)


@pytest.mark.parametrize("formats", [(), ("yaml",), "json", ("json", "xml")])
def test_unknown_formats_are_named(formats: Any) -> None:
    with pytest.raises(ValueError, match="expected formats such as"):
        pt2wire.save(linear_program(), io.BytesIO(), formats=formats)


@pytest.mark.parametrize("protocol", [-1, 1, 99, "2"])
def test_an_unknown_pickle_protocol_is_named(protocol: Any) -> None:
    with pytest.raises(ValueError, match="expected a pickle protocol from 2 to"):
        pt2wire.save(linear_program(), io.BytesIO(), pickle_protocol=protocol)


def test_an_unknown_form_is_named(reader: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="expected form 'json' or 'thrift', found 'xml'"):
        reader(io.BytesIO(linear_archive()), form="xml")


# Files that are not there, or not files: the OSError as it is.


def test_a_missing_file_is_the_operating_systems_error(reader: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        reader(tmp_path / "none.pt2")
    assert str(caught.value.filename) == str(tmp_path / "none.pt2")


def test_a_folder_is_the_operating_systems_error(reader: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        reader(tmp_path)
    with pytest.raises(IsADirectoryError), pytest.warns(UserWarning, match=r"ends in \.pt2"):
        pt2wire.save(linear_program(), tmp_path)


def test_a_missing_folder_is_the_operating_systems_error(tmp_path: Path) -> None:
    target = tmp_path / "none" / "m.pt2"
    with pytest.raises(FileNotFoundError) as caught:
        pt2wire.save(linear_program(), target)
    assert caught.value.filename == str(target)


@contextlib.contextmanager
def ordinary_user() -> Iterator[None]:
    """Root may write everywhere, so act as somebody else."""
    saved(linear_program())  # what is imported late may lie where only root may read
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_an_unwritable_folder_is_the_operating_systems_error() -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        target = folder / "m.pt2"
        target.write_bytes(b"old")
        folder.chmod(0o555)
        with ordinary_user(), pytest.raises(PermissionError) as caught:
            pt2wire.save(linear_program(), target)
        assert caught.value.filename == str(target)
        assert target.read_bytes() == b"old"
        assert [path.name for path in folder.iterdir()] == ["m.pt2"]
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_read_only_file_is_not_replaced() -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        target = folder / "m.pt2"
        target.write_bytes(b"old")
        target.chmod(0o444)
        folder.chmod(0o777)
        with ordinary_user(), pytest.raises(PermissionError) as caught:
            pt2wire.save(linear_program(), target)
        assert caught.value.filename == str(target)
        assert target.read_bytes() == b"old"
    finally:
        shutil.rmtree(folder)


# Files with another content.


def zipped(**files: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/"), content)
    return file.getvalue()


def torchscript() -> bytes:
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.ReLU()), file)
    return file.getvalue()


CONTENT: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (
        lambda: b"",
        "expected a .pt2 archive (a zip file), found an empty file. Was saving interrupted?",
    ),
    "text": (
        lambda: b"hello world, hello",
        "found a file that begins with b'hello wo'. Is this the right file?",
    ),
    "cut short": (
        lambda: linear_archive()[:-1000],
        "The file is probably cut short: copy or download it again",
    ),
    "cut short, of torch": (lambda: linear_torch_archive()[:5000], "The file is probably cut short"),
    "some zip file": (
        lambda: zipped(a=b"1"),
        "expected every record inside one folder, found 'a' at the top",
    ),
    "some zip file with a folder": (
        lambda: zipped(folder__a=b"1"),
        "found a zip file without the record 'archive_format'. Is this the right file?",
    ),
    "of torch 2.7 or older": (
        lambda: zipped(version=b"8.8", serialized_exported_program__json=b"{}"),
        "one of torch 2.7 or older: load and save it there",
    ),
    "of torch.save": (
        lambda: pickled(torch.ones(2)),
        "This was written by torch.save: load it with torch.load",
    ),
    "TorchScript": (torchscript, "This is TorchScript: load it with torch.jit.load"),
    "another archive format": (
        lambda: zipped(a__archive_format=b"pt3"),
        "archive_format: expected b'pt2', found b'pt3'",
    ),
    "another archive version": (
        lambda: with_records(linear_archive(), {"archive_version": b"1"}),
        "archive_version: expected b'0', found b'1'",
    ),
    "of a big-endian machine": (
        lambda: with_records(linear_archive(), {"byteorder": b"big"}),
        "byteorder: expected b'little', found b'big'",
    ),
    "no program": (
        lambda: zipped(a__archive_format=b"pt2", a__archive_version=b"0"),
        "expected at least one program (models/NAME.json), found none",
    ),
    "no weights config": (
        lambda: with_records(linear_torch_archive(), {"data/weights/model_weights_config.json": None}),
        "model_weights_config.json: expected program 'model' as json, but the archive has no",
    ),
    "weights in a pickle": (
        lambda: with_records(
            linear_torch_archive(),
            {"data/weights/model_weights_config.json": None, "data/weights/model.pt": b"x"},
        ),
        "Weights in one pickle, as torch 2.8 wrote them: load it with torch and save it again",
    ),
    "no weights": (
        lambda: with_records(linear_torch_archive(), {"data/weights/weight_0": None}),
        "expected the record 'data/weights/weight_0', but the archive has none",
    ),
    "JSON that is none": (
        lambda: with_records(linear_torch_archive(), {"models/model.json": b'{"graph_module": '}),
        "models/model.json:",
    ),
    "a changed weight": (
        lambda: linear_archive().replace(linear_program().state_dict["offset"].numpy().tobytes(), bytes(12)),
        "expected bytes with CRC",
    ),
}


@pytest.mark.parametrize(("make", "message"), CONTENT.values(), ids=CONTENT)
def test_other_content_is_named_with_what_to_do(
    make: Callable[[], bytes], message: str, reader: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "m.pt2"
    path.write_bytes(make())
    with pytest.raises(DeserializeError) as caught:
        reader(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("written_by", [linear_archive, linear_torch_archive])
def test_no_cut_file_loads(written_by: Callable[[], bytes], tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    data = written_by()
    for length in range(0, len(data), 97):
        path.write_bytes(data[:length])
        with pytest.raises(DeserializeError):
            pt2wire.read(path)


def test_an_unknown_program_is_named_with_those_that_are_there() -> None:
    data = saved({"encoder": linear_program(), "decoder": linear_program()})
    with pytest.raises(DeserializeError) as caught:
        pt2wire.load(io.BytesIO(data))
    assert str(caught.value) == (
        "<BytesIO>: expected a program 'model', found 'encoder', 'decoder'. "
        "Pass name=... to take another one."
    )


@pytest.mark.parametrize("name", ["a/../b", "/a", "a//b", "a\nb", "a\\b", "a" * 1024])
def test_names_that_reading_refuses_are_not_written(name: str) -> None:
    file = io.BytesIO()
    package_pt2(file, exported_programs={name: linear_program()})
    with pytest.raises(DeserializeError):
        pt2wire.load(file, name=name)
    file.seek(0)
    with pytest.raises(SerializeError, match=r"^programs\[.*\]: expected .* name of a "):
        pt2wire.save({name: linear_program()}, io.BytesIO())
    archive = pt2wire.read(io.BytesIO(linear_archive()))
    next(iter(archive.weights["model"].values())).meta.path_name = name
    with pytest.raises(SerializeError, match=r"^model:weights\[.*\]\.path_name: expected a plain file name"):
        pt2wire.write(archive, file)
    with pytest.raises(SerializeError, match=r"^model\.weights\..*\.meta\.path_name: expected .* name"):
        pt2wire.write(archive, file, allow_unsound=True)


@pytest.mark.parametrize("name", ["a/b", "", "..", "a/", "ö"])
def test_a_program_name_that_pytorch_writes_is_read_and_written_back(name: str) -> None:
    file, again, ours = io.BytesIO(), io.BytesIO(), io.BytesIO()
    package_pt2(file, exported_programs={name: linear_program()})
    file.seek(0)
    pt2wire.write(pt2wire.read(file), again)
    pt2wire.save({name: linear_program()}, ours)
    for written in (again, ours):
        written.seek(0)
        assert list(load_pt2(written).exported_programs) == [name]
        written.seek(0)
        assert list(pt2wire.load_all(written)) == [name]


@pytest.mark.parametrize("names", [("index",), ("model", "model_weights"), ("a_constants", "a")])
def test_program_names_that_clash_with_records_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(SerializeError, match=r"which is taken\. Give the program another name"):
        pt2wire.save({name: linear_program() for name in names}, io.BytesIO())


@pytest.mark.parametrize("name", ["", "../a", "/a", "a//b"])
def test_an_extra_file_that_leaves_its_folder_is_refused(name: str) -> None:
    with pytest.raises(SerializeError, match="expected a relative path as name of an extra file"):
        pt2wire.save(linear_program(), io.BytesIO(), extra_files={name: "x"})


def test_a_pickled_weight_is_refused_as_unsafe() -> None:
    config = pt2wire.read(io.BytesIO(linear_torch_archive())).weights["model"]["offset"].meta
    assert not config.use_pickle
    text = with_records(
        linear_torch_archive(),
        {
            "data/weights/model_weights_config.json": _record(
                "data/weights/model_weights_config.json"
            ).replace(b'"use_pickle": false', b'"use_pickle": true', 1)
        },
    )
    with pytest.raises((UnsafeArtifactError, DeserializeError), match="pickle"):
        pt2wire.load(io.BytesIO(text))


def _record(name: str) -> bytes:
    return bytes(pt2wire.read(io.BytesIO(linear_torch_archive())).record(name))


def test_limits_bound_what_a_file_costs_and_can_be_raised(reader: Callable[..., Any]) -> None:
    entries = len(pt2wire.read(io.BytesIO(linear_archive())).records)
    with pytest.raises(DeserializeError, match=f"expected at most {entries - 1} records, found"):
        reader(io.BytesIO(linear_archive()), limits=pt2wire.Limits(archive_entries=entries - 1))
    reader(io.BytesIO(linear_archive()), limits=pt2wire.Limits(archive_entries=entries))


def test_a_name_without_the_ending_is_saved_with_a_warning(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"torch.export.load expects a name that ends in .pt2"):
        pt2wire.save(linear_program(), tmp_path / "model.bin")
    loaded = pt2wire.load(tmp_path / "model.bin")
    assert torch.equal(loaded.module()(INPUT), linear_program().module()(INPUT))


# Files that have no end, or are no files.


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_a_device_without_end_is_refused_by_its_first_bytes() -> None:
    with pytest.raises(DeserializeError, match=r"^/dev/zero: expected a .pt2 archive .* begins with b'\\x00"):
        pt2wire.load("/dev/zero")


@pytest.mark.parametrize("where", ["left by torch.export.load", "in the middle", "at its end"])
def test_a_file_object_that_is_not_at_its_beginning_is_said_to_be_there(where: str, tmp_path: Path) -> None:
    data = linear_torch_archive()
    path = tmp_path / "model.pt2"
    path.write_bytes(data)
    with open(path, "rb") as file, tempfile.SpooledTemporaryFile() as spooled:
        spooled.write(data)
        for source in (io.BytesIO(data), file, spooled):  # read, mapped, and read piece by piece
            if where == "left by torch.export.load":
                source.seek(0)
                torch.export.load(source)
            else:
                source.seek(len(data) if where == "at its end" else 100)
            position = source.tell()
            assert position > 0
            with pytest.raises(DeserializeError, match=rf"is at byte {position}, .*with file\.seek\(0\)"):
                pt2wire.load(source)
            assert source.tell() == position


class Endless(io.RawIOBase):
    """Begins as a zip file does and never ends; counts what is read of it."""

    taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        buffer[:] = b"PK\x03\x04" * (len(buffer) // 4)
        self.taken += len(buffer)
        return len(buffer)


def test_a_stream_is_read_up_to_the_limit() -> None:
    stream = Endless()
    with pytest.raises(DeserializeError, match=r"expected at most 5000000 bytes .*raise `streamed_bytes`"):
        pt2wire.load(stream, limits=Limits(streamed_bytes=5_000_000))  # type: ignore[arg-type]
    assert stream.taken < 8_000_000


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="needs procfs")
def test_a_file_that_claims_to_be_empty_is_read() -> None:
    with pytest.raises(DeserializeError, match=r"^/proc/version: .*begins with b'Linux ve'"):
        pt2wire.load("/proc/version")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs procfs")
def test_an_error_while_reading_carries_the_path() -> None:
    with pytest.raises(OSError, match="'/proc/self/mem'"):
        pt2wire.load("/proc/self/mem")


def test_a_closed_file_and_a_path_with_a_null_character_are_named(tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    path.write_bytes(b"")
    with open(path, "rb") as file:
        pass
    with pytest.raises(ValueError, match=r"found .*m\.pt2, which is closed"):
        pt2wire.load(file)
    with pytest.raises(ValueError, match=r"'a\\x00\.pt2' with a null character"):
        pt2wire.load("a\0.pt2")


# What the reader would refuse, the writer refuses.


def test_a_name_is_as_long_as_the_reader_takes_and_no_longer() -> None:
    longest = "e" * (Limits().record_name_length - len("archive/extra/"))
    assert pt2wire.read(io.BytesIO(saved(linear_program(), extra_files={longest: "a"}))).extra_files
    for name in (longest + "e", "e" * 70_000):
        with pytest.raises(
            SerializeError, match=r"^extra_files\['e+'\]: expected .* at most 1024 characters"
        ):
            saved(linear_program(), extra_files={name: "a"})
    longest = "p" * (Limits().record_name_length - len("archive/data/constants/_constants_config.json"))
    assert list(pt2wire.load_all(io.BytesIO(saved({longest: linear_program()})))) == [longest]
    for name in (longest + "p", "p" * 70_000):
        with pytest.raises(SerializeError, match=r"^programs.*: expected .* at most 1024 characters"):
            saved({name: linear_program()})


def test_json_of_text_that_cannot_be_encoded_is_refused() -> None:
    with pytest.raises(DeserializeError, match=r"found the surrogate '\\ud800' at character 7"):
        pt2wire.from_json('{"a": "\ud800"}')


@pytest.mark.parametrize("flag", ["no", 0, 1, None])
def test_deserialize_takes_no_other_flags_for_artifacts_made_here(flag: Any) -> None:
    with pytest.raises(TypeError, match="allow_pickle"):
        pt2wire.deserialize(pt2wire.serialize(linear_program()), allow_pickle=flag)


def test_an_extra_file_of_text_that_cannot_be_encoded_is_named() -> None:
    with pytest.raises(
        SerializeError, match=r"^extra_files\['a'\]: .* found the surrogate '\\ud800' at character 1"
    ):
        saved(linear_program(), extra_files={"a": "b\ud800"})


def test_names_that_differ_in_case_only_are_both_named() -> None:
    with pytest.raises(SerializeError, match=r"more than case, found 'model' and 'Model'"):
        saved({"model": linear_program(), "Model": linear_program()})
    with pytest.warns(UserWarning, match=r"extra files 'a' and 'A' differ in case only") as caught:
        data = saved(linear_program(), extra_files={"a": "1", "A": "2"})
    assert len(caught) == 1
    by_torch, by_us = {"a": "", "A": ""}, {}
    torch.export.load(io.BytesIO(data), extra_files=by_torch)
    pt2wire.load(io.BytesIO(data), extra_files=by_us)
    assert by_torch["a"] == by_torch["A"]
    assert by_us == {"a": "1", "A": "2"}


def test_an_archive_without_programs_or_with_one_of_a_bad_name_is_not_written() -> None:
    file = io.BytesIO()
    with pytest.raises(SerializeError, match="expected at least one program, found none"):
        pt2wire.write(pt2wire.Archive(), file)
    archive = pt2wire.read(io.BytesIO(linear_archive()))
    archive.programs["../a"] = archive.programs["model"]
    with pytest.raises(
        SerializeError, match=r"^programs\['../a'\]: expected a relative path as name of a program"
    ):
        pt2wire.write(archive, file)
    assert file.getvalue() == b""


# Arguments of another type.


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        (3, "expected {} as a dict of versions, found int"),
        ({"aten": "q"}, "expected {} as numbers by namespace, such as {{'aten': 10}}, found 'aten': 'q'"),
        ({1: 2}, "expected {} as numbers by namespace, such as {{'aten': 10}}, found 1: 2"),
    ],
)
def test_versions_of_another_type_are_refused_by_the_name_of_the_argument(
    versions: Any, message: str
) -> None:
    data = io.BytesIO(linear_archive())
    artifact = pt2wire.serialize(linear_program())
    calls: list[tuple[str, Callable[[], Any]]] = [
        ("expected_opset_version", lambda: pt2wire.load(data, expected_opset_version=versions)),
        ("expected_opset_version", lambda: pt2wire.load_all(data, expected_opset_version=versions)),
        ("expected_opset_version", lambda: pt2wire.deserialize(artifact, expected_opset_version=versions)),
        ("opset_version", lambda: pt2wire.save(linear_program(), io.BytesIO(), opset_version=versions)),
        ("opset_version", lambda: pt2wire.serialize(linear_program(), opset_version=versions)),
        ("opset_version", lambda: pt2wire.to_tree(linear_program(), opset_version=versions)),
    ]
    for argument, call in calls:
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) == message.format(argument)


def test_what_is_no_payload_and_no_program_is_named_by_its_place() -> None:
    archive: Any = pt2wire.read(io.BytesIO(linear_archive()))
    archive.weights["model"]["q"] = 3
    with pytest.raises(TypeError, match=r"^archive\.weights\['model'\]\['q'\]: expected Payload of pt2wire"):
        pt2wire.write(archive, io.BytesIO())
    archive.programs["model"] = linear_program()
    with pytest.raises(
        TypeError, match=r"^archive\.programs\['model'\]: expected ExportedProgram of pt2wire"
    ):
        pt2wire.write(archive, io.BytesIO())
