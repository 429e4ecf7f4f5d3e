"""Custom objects: every promise for models that hold some, and what is refused."""

from __future__ import annotations

import contextlib
import io
import pickle
import random
import warnings
from pathlib import Path
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire import DeserializeError, SerializeError, UnsafeArtifactError
from pt2wire.exporting.symbols import Symbols
from pt2wire.exporting.values import export_tensor_meta
from pt2wire.generated import types
from pt2wire.inspecting import summarize
from pt2wire.validation.payloads import validate_payloads
from torch._export.serde import serialize as torch_serialize

from .helpers.exporting import exported
from .helpers.models_objects import OBJECTS, OBJECTS_BEYOND
from .helpers.objects import SCRIPT, Counter, Factor, queue
from .helpers.oracles import (
    PROMISES,
    PROMISES_BEYOND_PYTORCH,
    Promise,
    grouped,
    pytorch_load,
    save,
    trips_of,
)
from .helpers.scrambling import scrambled


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("name", grouped(OBJECTS))
def test_model(name: str, promise: Promise) -> None:
    promise(trips_of(name))


@pytest.mark.parametrize("promise", PROMISES_BEYOND_PYTORCH, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("name", grouped(OBJECTS_BEYOND))
def test_model_beyond_pytorch(name: str, promise: Promise) -> None:
    promise(trips_of(name))


# -- without permission -----------------------------------------------------------------------------------


@pytest.mark.parametrize("writer", ["pytorch_file", "our_file"])
@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("methods_of_script_objects", "constants['foo']: .* the pickle 'custom_obj_0'"),
        ("opaque_object", "constants['lifted_custom_0']: .* the pickle 'opaque_obj_0'"),
    ],
)
def test_objects_are_opened_only_with_allow_pickle(name: str, record: str, writer: str) -> None:
    pattern = record.replace("[", r"\[") + r".*Pass allow_pickle=True if you trust the author"
    data = getattr(trips_of(name), writer)
    with pytest.raises(UnsafeArtifactError, match=pattern):
        pt2wire.load(io.BytesIO(data))
    assert {finding.rule for finding in pt2wire.validate(io.BytesIO(data))} == {"payload-pickled"}


@pytest.mark.parametrize("writer", ["pytorch_file", "our_file"])
def test_a_program_that_takes_an_object_needs_no_pickle(writer: str) -> None:
    trips = trips_of("script_object_as_input")
    data = getattr(trips, writer)
    with pytest.warns(UserWarning) as warned:
        loaded = pt2wire.load(io.BytesIO(data))
    texts = [str(warning.message) for warning in warned]
    assert any("loaded without 'thing' among its constants" in text for text in texts), texts
    assert loaded.constants == {} and list(trips.program.constants) == ["thing"]
    assert loaded.graph_signature.user_inputs == ("x", "thing")
    assert trips.outputs(loaded) == trips.outputs(trips.program)
    assert pt2wire.validate(io.BytesIO(data)) == []


def test_objects_whose_methods_are_ordered_by_tokens_are_needed() -> None:
    data = trips_of("script_objects_ordered_by_tokens").our_file
    with pytest.raises(UnsafeArtifactError, match=r"'custom_obj_[01]'"):
        pt2wire.load(io.BytesIO(data))
    assert len(pt2wire.validate(io.BytesIO(data))) == 2


class Opens:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return open, (str(self.path), "w")


@pytest.mark.parametrize("name", ["opaque_object", "script_object_as_input", "opaque_values_as_arguments"])
def test_a_hostile_pickle_runs_only_with_allow_pickle(name: str, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    hostile = _with_object(trips_of(name).our_file, pickle.dumps(Opens(marker)))
    with contextlib.suppress(UnsafeArtifactError):
        pt2wire.load(hostile)
    pt2wire.validate(hostile)
    pt2wire.read(hostile)
    assert not marker.exists()
    with pytest.raises(DeserializeError, match=r"expected an object of class .* which is none"):
        pt2wire.load(hostile, allow_pickle=True)
    assert marker.exists(), "the control: that pickle runs when it is permitted"


def _with_object(data: bytes, content: bytes, prefix: str = "opaque_obj_") -> io.BytesIO:
    """The archive with all of its objects exchanged for one."""
    archive, file = pt2wire.read(io.BytesIO(data)), io.BytesIO()
    for payload in archive.constants["model"].values():
        payload.meta.path_name, payload.data = f"{prefix}9", memoryview(content)
    pt2wire.write(archive, file)
    return file


# -- damage and lies --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "prefix", "message"),
    [
        (
            b"no pickle",
            "custom_obj_",
            "expected a pickled object, found what cannot be opened .*Load the library",
        ),
        (b"no pickle", "opaque_obj_", "expected a pickled object, found what cannot be opened"),
        (pickle.dumps(Factor(2)), "opaque_obj_", "expected an object of class .*Counter, found .*Factor"),
        (pickle.dumps([1]), "opaque_obj_", "expected an object of class .*Counter, found .* which is none"),
        (pickle.dumps(Counter(1)), "tensor_", "expected what torch.save writes"),
    ],
)
def test_objects_that_are_not_what_the_program_says(content: bytes, prefix: str, message: str) -> None:
    changed = _with_object(trips_of("opaque_object").our_file, content, prefix)
    with pytest.raises(DeserializeError, match=message):
        pt2wire.load(changed, allow_pickle=True)


@pytest.mark.parametrize("method", ["__class__", "_get_method", "add_tensor()", "a.b", "", "größe"])
def test_names_of_methods_are_those_of_public_methods(method: str) -> None:
    for name in ("methods_of_script_objects", "script_objects_ordered_by_tokens"):
        tree = pt2wire.to_tree(trips_of(name).case.program())
        for node in tree.graph_module.graph.nodes:
            for named in node.inputs:
                if named.arg.type == "as_string":
                    named.arg = types.Argument.of_string(method)
        found = {finding.message.partition(", in node")[0] for finding in pt2wire.validate(tree)}
        assert found == {f"expected the name of a public method, found {method!r}"}


def test_methods_are_called_on_objects() -> None:
    tree = pt2wire.to_tree(trips_of("methods_of_script_objects").case.program())
    node = tree.graph_module.graph.nodes[0]
    node.inputs[0].arg = types.Argument.of_tensor(types.TensorArgument("x"))
    assert "expected a custom object and the name of a method, found as_tensor, as_string" in (
        pt2wire.validate(tree)[0].message
    )
    node.inputs.clear()
    assert "found none" in pt2wire.validate(tree)[0].message


def test_a_payload_of_a_tensor_is_no_object() -> None:
    archive = pt2wire.read(io.BytesIO(trips_of("opaque_object").our_file))
    payload = archive.constants["model"]["lifted_custom_0"]
    payload.meta = types.PayloadMeta("tensor_0", False, False, export_tensor_meta(torch.ones(1), Symbols()))
    findings = validate_payloads(
        archive.programs["model"],
        types.PayloadConfig({}),
        types.PayloadConfig({"lifted_custom_0": payload.meta}),
    )
    assert [finding.rule for finding in findings] == ["payload-kind"]


# -- what is kept -----------------------------------------------------------------------------------------


def test_objects_under_several_names_stay_one() -> None:
    ep = trips_of("methods_of_script_objects").case.program()
    ep.constants["other"] = ep.constants["foo"]
    loaded = pt2wire.load(io.BytesIO(save(ep)), allow_pickle=True)
    assert loaded.constants["other"] is loaded.constants["foo"]


class _Pushing(torch.nn.Module):
    def __init__(self, held: Any) -> None:
        super().__init__()
        self.held = held

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.ops._TorchScriptTesting.queue_push(self.held, x)
        return x + 0


class _Popping(_Pushing):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.ops._TorchScriptTesting.queue_pop(self.held)


class _Sized(_Pushing):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.held.size()  # type: ignore[no-any-return]


def test_numbers_that_methods_give_are_told_to_be_refused_by_pytorch() -> None:
    ep, file = torch.export.export(_Sized(queue()), (torch.ones(2),), strict=False), io.BytesIO()
    with pytest.warns(
        UserWarning, match="export.load will refuse .*: a number as the only result of `call_torchbind`"
    ):
        pt2wire.save(ep, file)
    with pytest.raises(RuntimeError, match="error when deserializing"):
        pytorch_load(file.getvalue())


def _counter_with(tensor: torch.Tensor) -> Counter:
    counter = Counter(1)
    counter.tensor = tensor  # type: ignore[attr-defined]
    return counter


@pytest.mark.parametrize("make", [SCRIPT._ContainsTensor, _counter_with], ids=["script", "opaque"])
def test_a_warning_tells_of_objects_that_hold_memory_of_weights(make: Any) -> None:
    ep, memory = exported(lambda self, x: x + 1, torch.ones(2)), torch.ones(4)
    ep.constants["held"] = make(memory)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pt2wire.save(ep, io.BytesIO())
    ep.state_dict["weight"] = memory[2:]
    file = io.BytesIO()
    with pytest.warns(UserWarning, match="model: the object 'held' holds memory of 'weight', and a copy"):
        pt2wire.save(ep, file)
    assert type(pt2wire.load(file, allow_pickle=True).constants["held"]) is type(ep.constants["held"])


def test_programs_share_objects_as_before() -> None:
    shared, x = queue(), torch.ones(1)
    programs = {kind.__name__: torch.export.export(kind(shared), (x,)) for kind in (_Pushing, _Popping)}
    file = io.BytesIO()
    pt2wire.save(programs, file)
    for each in (programs, pt2wire.load_all(file, allow_pickle=True)):
        assert each["_Pushing"].constants["held"] is each["_Popping"].constants["held"]
        each["_Pushing"].module()(x * 7)
        assert each["_Popping"].module()(x) == 8


def test_artifacts_hold_objects_as_pytorchs_do() -> None:
    for name in ("methods_of_script_objects", "opaque_values_as_arguments"):
        trips = trips_of(name)
        artifact = pt2wire.serialize(trips.case.program())
        assert trips.outputs(pt2wire.deserialize(artifact)) == trips.outputs(trips.program)
        theirs = torch_serialize.serialize(trips.case.program())
        assert artifact.exported_program == pt2wire.to_json(pt2wire.from_json(artifact.exported_program))
        with pytest.raises(UnsafeArtifactError, match=r"constants: .* Pass allow_pickle=True"):
            pt2wire.deserialize(theirs)
        loaded = pt2wire.deserialize(theirs, allow_pickle=True)
        assert loaded.constants.keys() == trips.program.constants.keys()
        assert trips.outputs(loaded) == trips.outputs(trips.program)


def test_what_pytorch_read_of_ours_is_saved_again() -> None:
    """PyTorch keeps objects of arguments among the constants."""
    trips = trips_of("opaque_values_as_arguments")
    read = pytorch_load(trips.our_file)
    assert "_custom_obj_0" in read.constants
    again = trips.load(save(read))
    assert again.constants == {} and trips.outputs(again) == trips.outputs(trips.program)
    read.constants["_custom_obj_0"] = Factor(7)
    with pytest.raises(
        SerializeError, match=r"^_custom_obj_0: expected a name that no object in an argument"
    ):
        save(read)


def test_classes_without_pickling_are_refused_by_name() -> None:
    ep = trips_of("opaque_object").case.program()
    ep.constants["lifted_custom_0"].step = lambda: None
    with pytest.raises(SerializeError, match=r"^lifted_custom_0: cannot pickle an object of class .*Counter"):
        save(ep)


def test_programs_with_objects_have_one_form_and_digest() -> None:
    for name in (*OBJECTS, *OBJECTS_BEYOND):
        tree = pt2wire.to_tree(trips_of(name).case.program())
        form = pt2wire.to_thrift(pt2wire.canonicalize(tree))
        other = pt2wire.canonicalize(scrambled(tree, random.Random(1)))
        assert pt2wire.to_thrift(other) == form
        assert pt2wire.diff(tree, other) == []


# -- prints -----------------------------------------------------------------------------------------------


def _printing(text: str, *, ordered: bool = False) -> types.ExportedProgram:
    tree = pt2wire.to_tree(trips_of("prints").case.program())
    node = tree.graph_module.graph.nodes[0]
    node.inputs[0].arg = types.Argument.of_string(text)
    if ordered:
        node.target = "torch.ops.higher_order.with_effects"
        operator = types.Argument.of_operator("torch.ops.higher_order.print")
        token = types.Argument.of_tensor(types.TensorArgument("token"))
        for argument in (operator, token):
            node.inputs.insert(0, types.NamedArgument("", argument, types.ArgumentKind.POSITIONAL))
        tree.graph_module.graph.inputs.insert(0, token)
        tree.graph_module.graph.tensor_values["token"] = tree.graph_module.graph.tensor_values["x"]
        spec = types.InputSpec.of_token(types.InputTokenSpec(types.TokenArgument("token")))
        tree.graph_module.signature.input_specs.insert(0, spec)
    return tree


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{0.__class__.__init__.__globals__}", "number or name of an argument, found '0.__class__"),
        ("{y[0]}", r"number or name of an argument, found 'y\[0\]'"),
        ("{} {} {}", "number or name of an argument, found ''"),
        ("{2}", "number or name of an argument, found '2'"),
        ("{x}", "number or name of an argument, found 'x'"),
        ("{y:>1000000000}", "expected a short format of a field, found >1000000000"),
        ("{y:{z}}", "expected a short format of a field, found {z}"),
        ("{y", "expected a format, found '{y'"),
    ],
)
def test_formats_name_arguments_and_nothing_in_them(text: str, message: str, ordered: bool) -> None:
    with pytest.raises(UnsafeArtifactError, match=message):
        pt2wire.from_tree(_printing(text, ordered=ordered), {}, {}, allow_operators=["higher_order.print"])


def test_prints_are_read_only_when_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    trips = trips_of("prints")
    for data in (trips.our_file, trips.pytorch_file):
        with pytest.raises(
            UnsafeArtifactError, match=r"it prints what .*allow_operators=\['higher_order\.print'\]"
        ):
            pt2wire.load(io.BytesIO(data))
        capsys.readouterr()
        trips.load(data).module()(torch.tensor([1.0, 2.0]))
        assert capsys.readouterr().out == f"tensor([1., 2.]) of {3:>20} 1.50 'q'\n"


def test_inspecting_names_the_classes_of_objects() -> None:
    summary = summarize(pt2wire.to_tree(trips_of("script_objects_ordered_by_tokens").case.program()))
    described = {value.name: (value.role, value.type, value.target) for value in summary.inputs}
    class_fqn = "__torch__.torch.classes._TorchScriptTesting._Foo"
    assert described["obj_foo"] == ("custom obj", class_fqn, "foo")
    assert described["thing"] == ("user input", class_fqn, None)
