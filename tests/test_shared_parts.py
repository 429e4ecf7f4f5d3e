"""Parts of weights, of sparse ones and of those of subclasses, share memory with other weights as before."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire.errors import DeserializeError, Pt2WireError, SerializeError
from pt2wire.generated.types import PayloadMeta, SymInt
from pt2wire.tensor_memory import memory_parts
from torch import Tensor, nn
from torch._export.serde import serialize as torch_serialize
from torch.export import ExportedProgram
from torch.testing._internal.two_tensor import TwoTensor

from .helpers.exporting import exported
from .helpers.programs import describe_program, differences


def _model(fill: Callable[[Any], None]) -> ExportedProgram:
    """A program that changes the buffer `base` with each call, and returns what its weights are then."""
    model = nn.Module()
    fill(model)

    def forward(self: Any, x: Tensor) -> Any:
        self.base.add_(1)
        weights = (*self.parameters(), *self.buffers())
        return [x + (w[-4:] if w.layout is torch.strided else w.to_dense()) for w in weights]

    model.__class__ = type("Model", (nn.Module,), {"forward": forward})
    return torch.export.export(model, (torch.zeros(4),))


def _of_subclasses(m: Any) -> None:
    base, other = torch.zeros(8), torch.zeros(8)
    m.register_buffer("base", base)
    m.pair = nn.Parameter(TwoTensor(base[:4], other[:4]))
    m.register_buffer("second", TwoTensor(other[:4], base[:4]))
    m.register_buffer("hidden", TwoTensor(base[:4], torch.randn(4)), persistent=False)
    m.register_buffer("integers", other[:4].view(torch.int32))


def _of_one(m: Any) -> None:
    m.register_buffer("base", torch.zeros(4))
    m.pair = nn.Parameter(TwoTensor(m.base, torch.ones(4)))


def _of_a_subclass_first(m: Any) -> None:
    base = torch.zeros(4)
    m.pair = nn.Parameter(TwoTensor(base, torch.ones(4)))
    m.register_buffer("integers", base.view(torch.int32))
    m.register_buffer("hidden", base[:], persistent=False)
    m.register_buffer("base", base)


def _coo(values: Tensor) -> Tensor:
    return torch.sparse_coo_tensor(torch.arange(4)[None], values, (4,), is_coalesced=True)


def _sparse_first(m: Any) -> None:
    base = torch.zeros(4)
    m.register_buffer("a", _coo(base))
    m.register_buffer("base", base)
    m.register_buffer("bits", base.view(torch.int32))


def _sparse_weight_and_constant(m: Any) -> None:
    base = torch.zeros(4)
    m.register_buffer("a", _coo(base))
    m.register_buffer("base", base, persistent=False)


def _sparse_constant_and_weight(m: Any) -> None:
    base = torch.zeros(4)
    m.register_buffer("a", _coo(base), persistent=False)
    m.register_buffer("base", base)


def _written(ep: Any, **options: Any) -> io.BytesIO:
    pt2wire.save(ep, file := io.BytesIO(), **options)
    return file


def _called_twice(ep: ExportedProgram) -> list[str]:
    module = ep.module()
    return [str(module(torch.zeros(4))) for _ in range(2)]


@pytest.mark.filterwarnings("ignore:.*torch.export.load will refuse")
@pytest.mark.parametrize(
    "fill",
    [
        _of_subclasses,
        _of_a_subclass_first,
        _sparse_first,
        _sparse_weight_and_constant,
        _sparse_constant_and_weight,
    ],
)
@pytest.mark.parametrize("form", ["json", "thrift"])
def test_parts_share_memory_as_before(fill: Callable[[Any], None], form: Any) -> None:
    if form == "json" and "sparse" in fill.__name__:
        form = "thrift"  # PyTorch's format has no sparse weights
    ep = _model(fill)
    file = _written(ep, formats=(form,))
    loaded = pt2wire.load(file, types=[TwoTensor])
    assert not differences(describe_program(ep), describe_program(loaded))
    assert _written(loaded, formats=(form,)).getvalue() == file.getvalue()
    copy = io.BytesIO()
    pt2wire.write(pt2wire.read(file), copy)
    again = pt2wire.load(copy, types=[TwoTensor], mmap=False)
    assert _called_twice(ep) == _called_twice(loaded) == _called_twice(again)


def _holding(weight: Tensor, *, persistent: bool = True) -> ExportedProgram:
    def fill(m: Any) -> None:
        m.register_buffer("base", torch.zeros(4))
        if isinstance(weight, nn.Parameter):
            m.weight = weight
        else:
            m.register_buffer("weight", weight, persistent=persistent)

    return _model(fill)


def _programs() -> dict[str, ExportedProgram]:
    """Programs that share memory, with parameters, constants, parts, dtypes and conjugates."""
    base, pair = torch.randn(8), nn.Parameter(TwoTensor(torch.randn(4), torch.randn(4)))
    numbers = torch.randn(4, dtype=torch.complex64)
    return {
        "parameter": _holding(nn.Parameter(base)),
        "constant": _holding(base[4:], persistent=False),
        "integers": _holding(base[:4].view(torch.int32)),
        "part": _holding(TwoTensor(base[:4], torch.randn(4))),
        "hidden_part": _holding(TwoTensor(torch.randn(4), base[:4]), persistent=False),
        "pair": _holding(pair),
        "same_pair": _holding(pair),
        "hidden_pair": _holding(pair.detach(), persistent=False),
        "numbers": _holding(numbers),
        "conjugate": _holding(numbers.conj(), persistent=False),
    }


def _groups(programs: Any) -> list[list[str]]:
    """Tensors of programs by the memory in which they lie."""
    found: dict[int, list[str]] = {}
    for name, ep in programs.items():
        for fqn, tensor in {**ep.state_dict, **ep.constants}.items():
            for path, part in memory_parts(tensor).items():
                found.setdefault(part.untyped_storage().data_ptr(), []).append(f"{name} {fqn} {path}")
    return sorted(found.values())


def test_programs_share_memory_whatever_their_records_are() -> None:
    programs = _programs()
    file = _written(programs)
    loaded = pt2wire.load_all(file, types=[TwoTensor])
    assert len(_groups(programs)) == 16
    assert _groups(loaded) == _groups(programs)
    for name, ep in programs.items():
        assert not differences(describe_program(ep), describe_program(loaded[name]))
        alone = pt2wire.load(file, name=name, types=[TwoTensor])
        assert not differences(describe_program(ep), describe_program(alone))
    assert _written(loaded).getvalue() == file.getvalue()
    copy = io.BytesIO()
    pt2wire.write(pt2wire.read(file), copy)
    assert _groups(pt2wire.load_all(copy, types=[TwoTensor], mmap=False)) == _groups(programs)


def test_the_digest_of_a_program_says_nothing_of_others() -> None:
    programs = {name: ep for name, ep in _programs().items() if name in ("parameter", "constant")}
    digests = []
    for archive in (
        pt2wire.read(_written(programs)),
        pt2wire.read(_written({"constant": programs["constant"]})),
    ):
        stored = (each["constant"] for each in (archive.programs, archive.weights, archive.constants))
        digests.append(pt2wire.digest(*stored))
    assert digests[0] == digests[1]


def test_memory_that_programs_do_not_share_is_refused() -> None:
    file = _written({name: ep for name, ep in _programs().items() if name in ("parameter", "constant")})
    archive = pt2wire.read(file)
    constant = archive.constants["constant"]["weight"]
    assert constant.meta.memory == archive.weights["parameter"]["weight"].meta.memory == "parameter:weight"
    constant.data = memoryview(bytes(len(constant.data)))
    with pytest.raises(
        SerializeError, match=r"constants.weight: expected the bytes of the memory .parameter:w"
    ):
        pt2wire.write(archive, io.BytesIO())
    place = file.getvalue().index(bytes(pt2wire.read(file).constants["constant"]["weight"].data))
    data = bytearray(file.getvalue())
    for at in (place, data.index(data[place : place + 32], place + 1)):
        changed = bytearray(data)
        changed[at] ^= 1
        with pytest.raises(DeserializeError, match="expected the bytes of the memory 'parameter:weight'"):
            pt2wire.load_all(io.BytesIO(changed), verify=False)


def test_a_part_that_shares_nothing_is_in_its_pickle_alone() -> None:
    weight = nn.Parameter(TwoTensor(torch.zeros(4), torch.ones(4)))
    ep = exported(lambda self, x: x + self.weight, torch.zeros(4), attributes={"weight": weight})
    archive = pt2wire.read(_written(ep))
    assert archive.weights["model"]["weight"].meta.inner is None
    assert [name for name in archive.records if "weight_" in name] == ["data/weights/weight_0"]


@pytest.mark.parametrize("fill", [_of_subclasses, _of_a_subclass_first])
def test_artifacts_keep_what_parts_share(fill: Callable[[Any], None]) -> None:
    ep = _model(fill)
    artifact = pt2wire.serialize(ep)
    loaded = pt2wire.deserialize(artifact, types=[TwoTensor])
    assert not differences(describe_program(ep), describe_program(loaded))
    fields = artifact.exported_program, artifact.state_dict, artifact.constants, artifact.example_inputs
    with torch.serialization.safe_globals([TwoTensor]):
        theirs = torch_serialize.deserialize(torch_serialize.SerializedArtifact(*fields))
    assert list(theirs.state_dict) == list(ep.state_dict)
    for name, weight in ep.state_dict.items():
        assert str(theirs.state_dict[name]) == str(weight)
    assert _called_twice(ep) == _called_twice(loaded)


class Mixed(TwoTensor):
    """A tensor whose parts have two dtypes."""

    @staticmethod
    def __new__(cls, a: Tensor, b: Tensor, *_: Any) -> Any:
        return Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype)

    def __init__(self, a: Tensor, b: Tensor, *_: Any) -> None:
        self.a, self.b = a, b

    @staticmethod
    def __tensor_unflatten__(parts: Any, note: Any, size: Any, stride: Any) -> Mixed:
        return Mixed(parts["a"], parts["b"])


def test_two_dtypes_in_one_memory_of_a_subclass_are_refused_by_name() -> None:
    base = torch.zeros(4)
    weight = Mixed(base, base.view(torch.int32))
    ep = exported(lambda self, x: x + 1, torch.zeros(4))
    ep.state_dict["weight"] = weight
    with pytest.raises(SerializeError, match=r"^weight: cannot pickle a tensor of the class Mixed .*types"):
        pt2wire.save(ep, io.BytesIO())
    with pytest.raises(SerializeError, match=r"^weight.b: cannot save what views the memory of 'weight.a'"):
        pt2wire.serialize(ep)


def _other_bytes(file: io.BytesIO) -> None:
    archive = pt2wire.read(file)
    weights = archive.weights["model"]
    for payload in (weights["base"], weights["pair"].inner["a"]):
        payload.data = memoryview(bytes([1]) * len(payload.data))
    pt2wire.write(archive, file)


def _described(change: Callable[[PayloadMeta], Any]) -> Callable[[io.BytesIO], None]:
    def lie(file: io.BytesIO) -> None:
        archive = pt2wire.read(file)
        change(archive.weights["model"]["pair"].inner["a"].meta)
        pt2wire.write(archive, file, allow_unsound=True)

    return lie


def _renamed(file: io.BytesIO) -> None:
    archive = pt2wire.read(file)
    parts = archive.weights["model"]["pair"].inner
    parts["c"] = parts.pop("a")
    pt2wire.write(archive, file)


@pytest.mark.parametrize(
    ("lie", "message"),
    [
        (_other_bytes, r"weights.pair.a: expected the bytes that it has in the pickle, found others"),
        (_renamed, r"weights.pair.c: expected the tensor that is described in the pickle, found none"),
        (
            _described(lambda meta: meta.tensor_meta.sizes.__setitem__(0, SymInt.of_int(3))),
            r"weights.pair.a: expected the tensor that is described in the pickle, found another",
        ),
        (
            _described(lambda meta: setattr(meta, "use_pickle", True)),
            r"pair'\].inner\['a'\]: expected a strided tensor as part of a pickled one",
        ),
        (
            _described(lambda meta: setattr(meta, "alias_of", "pair.c")),
            r"weights.pair.a: said to share the storage of 'pair.c', which is not there",
        ),
    ],
)
def test_parts_that_are_not_as_said_are_refused(lie: Callable[[io.BytesIO], None], message: str) -> None:
    file = _written(_model(_of_one))
    with pytest.raises(Pt2WireError, match=message):
        lie(file)
        pt2wire.load(file, types=[TwoTensor])
