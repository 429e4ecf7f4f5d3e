"""Tensors of subclasses: made only of classes that the caller hands in, whatever the file says of them."""

from __future__ import annotations

import enum
import io
import os
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire.errors import DeserializeError, SerializeError, UnsafeArtifactError
from pt2wire.generated import types
from pt2wire.inspecting import summarize_archive
from torch import Tensor, nn
from torch.testing._internal.two_tensor import TwoTensor

from .helpers.archives import pickled, saved
from .helpers.exporting import exported
from .helpers.oracles import pytorch_load
from .helpers.programs import describe_program, differences

PAIR = "torch.testing._internal.two_tensor:TwoTensor"


def _saved(weight: Tensor, **options: Any) -> bytes:
    ep = exported(lambda self, x: x + self.weight, torch.ones(2, 2), attributes={"weight": weight})
    return saved(ep, **options)


def _pair() -> TwoTensor:
    return TwoTensor(torch.ones(2, 2), torch.full((2, 2), 3.0))


@pytest.mark.parametrize("form", ["json", "thrift"])
def test_a_class_that_was_not_handed_in_is_named(form: Any) -> None:
    data = _saved(nn.Parameter(_pair()), formats=(form,))
    message = f"found a pickled one of the class '{PAIR}'. Pass types=\\[TwoTensor\\]"
    for handed_in in ((), (nn.ReLU,)):
        with pytest.raises(UnsafeArtifactError, match=message):
            pt2wire.load(io.BytesIO(data), types=handed_in)
    assert [finding.rule for finding in pt2wire.validate(io.BytesIO(data))] == ["payload-pickled"]
    loaded = pt2wire.load(io.BytesIO(data), types=[TwoTensor])
    weight = loaded.state_dict["weight"]
    assert isinstance(weight, nn.Parameter) and isinstance(weight, TwoTensor) and weight.requires_grad
    (summary,) = summarize_archive(pt2wire.read(io.BytesIO(data)))[0].weights
    assert (summary.kind, summary.type) == ("pickled object", "float32[2, 2] TwoTensor")
    trusted = pt2wire.load(io.BytesIO(data), allow_pickle=True)
    assert isinstance(trusted.state_dict["weight"], TwoTensor)


def test_pytorchs_files_do_not_name_the_class_and_are_refused_likewise() -> None:
    weight = nn.Parameter(_pair())
    ep = exported(lambda self, x: x + self.weight, torch.ones(2, 2), attributes={"weight": weight})
    file = io.BytesIO()
    torch.export.save(ep, file)
    with pytest.raises(UnsafeArtifactError, match="found the pickle"):
        pt2wire.load(io.BytesIO(file.getvalue()))
    with pytest.raises(UnsafeArtifactError, match=r"without running code of torch\.testing.*TwoTensor"):
        pt2wire.load(io.BytesIO(file.getvalue()), types=[nn.ReLU])
    loaded = pt2wire.load(io.BytesIO(file.getvalue()), types=[TwoTensor])
    assert isinstance(loaded.state_dict["weight"], TwoTensor)


class _Opens:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_what_a_pickle_holds_is_checked_though_its_class_is_handed_in(tmp_path: Path) -> None:
    data = _saved(nn.Parameter(_pair()))
    other = TwoTensor(torch.ones(3, 2), torch.ones(3, 2))
    lies: list[tuple[object, str]] = [
        (_Opens(tmp_path / "made"), "cannot be opened without running code of posix.mkdir"),
        (other, r"expected a tensor of sizes \[2, 2\] in a pickle, found \[3, 2\]"),
        (torch.ones(2, 2), f"expected a tensor of '{PAIR}' in a pickle, found one of 'Tensor'"),
        ("text", "expected a tensor in a pickle, found str"),
    ]
    for content, message in lies:
        archive = pt2wire.read(io.BytesIO(data))
        archive.weights["model"]["weight"].data = memoryview(pickled(content))
        changed = io.BytesIO()
        pt2wire.write(archive, changed)
        with pytest.raises(DeserializeError, match=message):
            pt2wire.load(io.BytesIO(changed.getvalue()), types=[TwoTensor])
    assert not (tmp_path / "made").exists()


class Color(enum.Enum):
    RED = 1


_IN_PLACE_OF_PLAIN: dict[str, tuple[object, str]] = {
    "a sparse tensor": (
        torch.eye(2).to_sparse(),
        "of layout torch.strided in a pickle, found torch.sparse_coo",
    ),
    "one without data": (torch.ones(2, 2, device="meta"), "of device cpu in a pickle, found meta"),
    "one that wants a gradient": (torch.ones(2, 2, requires_grad=True), "of requires_grad False in a pickle"),
    "one over less memory": (torch.ones(1).expand(2, 2), r"of strides \[2, 1\] in a pickle, found \[0, 0\]"),
    "one of a class": (_pair(), "without running code of torch.testing.*TwoTensor"),
}


def _with_pickle(content: object) -> io.BytesIO:
    """A program of a plain tensor which lies in a pickle."""
    archive, changed = pt2wire.read(io.BytesIO(_saved(torch.ones(2, 2)))), io.BytesIO()
    payload = archive.constants["model"].get("weight") or archive.weights["model"]["weight"]
    payload.meta.use_pickle, payload.data = True, memoryview(pickled(content))
    pt2wire.write(archive, changed)
    changed.seek(0)
    return changed


@pytest.mark.parametrize("name", _IN_PLACE_OF_PLAIN)
def test_a_class_that_is_handed_in_lets_no_other_tensor_in_than_is_described(name: str) -> None:
    content, message = _IN_PLACE_OF_PLAIN[name]
    with pytest.raises(DeserializeError, match=message):
        pt2wire.load(_with_pickle(content), types=[Color])


@pytest.mark.parametrize("record", ["opaque_obj_0", "custom_obj_0"])
def test_an_object_that_says_it_is_of_a_class_handed_in_stays_closed(tmp_path: Path, record: str) -> None:
    archive = pt2wire.read(io.BytesIO(_saved(nn.Parameter(_pair()))))
    payload = archive.weights["model"]["weight"]
    payload.meta.path_name = record
    payload.data = memoryview(pickle.dumps(_Opens(tmp_path / "made")))
    changed = io.BytesIO()
    pt2wire.write(archive, changed)
    with pytest.raises(DeserializeError):
        pt2wire.load(io.BytesIO(changed.getvalue()), types=[TwoTensor])
    assert not (tmp_path / "made").exists()


class Special(nn.Parameter):
    """A parameter of a class of its own."""


def test_a_class_of_parameters_is_a_parameter_to_whoever_does_not_hand_it_in() -> None:
    data = _saved(Special(torch.ones(2)))
    assert type(pt2wire.load(io.BytesIO(data), types=[Special]).state_dict["weight"]) is Special
    with pytest.warns(UserWarning, match=rf"weights.weight: read as Parameter, .*{__name__}:Special"):
        assert type(pt2wire.load(io.BytesIO(data)).state_dict["weight"]) is nn.Parameter
    assert type(pytorch_load(data).state_dict["weight"]) is nn.Parameter


def test_a_parameter_of_a_class_in_a_function_is_refused_by_name_and_saved_by_torch() -> None:
    class Local(nn.Parameter):
        pass

    model = nn.Linear(2, 1)
    model.weight = Local(torch.ones(1, 2))
    ep, theirs = torch.export.export(model, (torch.ones(3, 2),)), io.BytesIO()
    torch.export.save(ep, theirs)
    assert type(pytorch_load(theirs.getvalue()).state_dict["weight"]) is nn.Parameter
    with pytest.raises(SerializeError, match=r"^weight: expected a class that its module knows, .*Local"):
        pt2wire.save(ep, io.BytesIO())


def _with_meta(change: Callable[[types.TensorMeta], None]) -> torch.export.ExportedProgram:
    ep = exported(lambda self, x: x * 2, _pair())
    tree = pt2wire.to_tree(ep)
    change(tree.graph_module.graph.tensor_values["x"])
    return pt2wire.from_tree(tree, {}, {}, types=[TwoTensor, Sloppy, nn.ReLU, Tensor])


def test_values_of_a_class_are_of_it_again_if_it_is_handed_in() -> None:
    made = _with_meta(lambda meta: None)
    assert [type(node.meta["val"]) for node in made.graph.nodes if node.op != "output"] == [TwoTensor] * 2
    tree = pt2wire.to_tree(made)
    with pytest.warns(UserWarning, match=f"values of the class '{PAIR}' are read as plain tensors"):
        plain = pt2wire.from_tree(tree, {}, {})
    assert not any(isinstance(node.meta["val"], TwoTensor) for node in plain.graph.nodes)


def _without_a_part(meta: types.TensorMeta) -> None:
    assert meta.inner is not None
    del meta.inner["b"]


def _of_another_size(meta: types.TensorMeta) -> None:
    assert meta.inner is not None
    meta.inner["b"].sizes[0] = types.SymInt.of_int(1)


class Sloppy(TwoTensor):
    """Makes tensors of another class."""

    @staticmethod
    def __tensor_unflatten__(parts: Any, context: Any, size: Any, stride: Any) -> Any:
        return TwoTensor(parts["a"], parts["b"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_without_a_part, "expected parts of which .* can be made, found others .KeyError: 'b'"),
        (_of_another_size, "expected parts of which .* can be made, found others .AssertionError"),
        (
            lambda meta: setattr(meta, "subclass", f"{__name__}:Sloppy"),
            "expected a tensor of the class .* as described, found another",
        ),
        (
            lambda meta: setattr(meta, "subclass", "torch.nn.modules.activation:ReLU"),
            "expected a class of tensors made of tensors, found 'torch.nn.modules.activation:ReLU'",
        ),
        (
            lambda meta: setattr(meta, "subclass", "torch:Tensor"),
            "expected a class of tensors made of tensors, found 'torch:Tensor'",
        ),
    ],
    ids=["a part less", "another size", "another class", "a module", "torch.Tensor"],
)
def test_values_that_their_class_cannot_be_made_of_are_refused(
    change: Callable[[types.TensorMeta], None], message: str
) -> None:
    with pytest.raises(DeserializeError, match=message):
        _with_meta(change)


class Attached(TwoTensor):
    """Keeps what no file can hold."""

    def __tensor_flatten__(self) -> Any:
        return ["a", "b"], nn.ReLU()

    @staticmethod
    def __tensor_unflatten__(parts: Any, context: Any, size: Any, stride: Any) -> Any:
        return Attached(parts["a"], parts["b"])


class Noted(TwoTensor):
    """Counts something among its tensors that is none, as those that are spread over devices do."""

    note = nn.ReLU()

    def __tensor_flatten__(self) -> Any:
        return ["a", "b", "note"], None

    @staticmethod
    def __tensor_unflatten__(parts: Any, context: Any, size: Any, stride: Any) -> Any:
        return Noted(parts["a"], parts["b"])


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(Attached, "expected an argument that the format can hold, found .*ReLU"), (Noted, "tensor as `note`")],
)
def test_values_of_classes_that_keep_more_are_plain_tensors(kind: type[TwoTensor], reason: str) -> None:
    ep = exported(lambda self, x: x * 2, _pair())
    for node in ep.graph.nodes:
        if isinstance(node.meta.get("val"), TwoTensor):
            node.meta["val"].__class__ = kind
    with pytest.warns(UserWarning, match=f"of the class {kind.__name__} are saved as plain .*{reason}"):
        tree = pt2wire.to_tree(ep)
    assert all(meta.subclass is None for meta in tree.graph_module.graph.tensor_values.values())
    assert pt2wire.validate(tree) == []


def test_a_program_that_gives_more_than_its_tree_spec_says_comes_back_as_it_is() -> None:
    """PyTorch takes outputs of subclasses apart, and leaves the tree spec as it was."""
    ep = exported(
        lambda self, x: x + self.weight, torch.ones(2, 2), attributes={"weight": nn.Parameter(_pair())}
    )
    ep = ep.run_decompositions()
    assert len(ep.graph.output_node().args[0]) == 2  # type: ignore[arg-type]
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pt2wire.save(ep, file)
        loaded = pt2wire.load(file)
    assert not differences(describe_program(ep), describe_program(loaded))
    for program in (ep, pytorch_load(file.getvalue()), loaded):
        with pytest.raises(ValueError, match=r"has length 2 but the spec .* holds 1 items"):
            program.module()(torch.ones(2, 2))
