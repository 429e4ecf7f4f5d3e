"""Operators of extensions: registering handlers, and what becomes of files whose extension is not there."""

from __future__ import annotations

import copy
import io
from collections.abc import Iterator
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire import DeserializeError, SerializeError, extensions, register_extension
from pt2wire.importing import targets
from torch._export.serde import serialize as torch_serialize
from torch._export.verifier import Verifier

from .helpers.archives import saved
from .helpers.extensions import NAMESPACE, OPS, EdgeHandler, EdgeOp, in_dialect
from .helpers.models import MODELS
from .helpers.programs import assert_same_program


class Op:
    """An operator of an extension of its own for each test."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x.relu()


class OwnVerifier(Verifier):
    dialect = "WIRETESTS_OWN"

    def allowed_op_types(self) -> tuple[type[Any], ...]:
        return (*super().allowed_op_types(), Op, EdgeOp)


class Handler:
    """Answers as each test wants; the methods are those of an object, not of a class."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {
            "namespace": "own",
            "to_op_name": lambda op: op.__name__,
            "from_op_name": {"relu": Op("relu")}.__getitem__,
            "op_schema": lambda op: torch.ops.aten.relu.default._schema,
        } | answers

    def namespace(self) -> str:
        return self.answers["namespace"]  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        return self.__dict__["answers"][name]


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Takes back what a test registers."""
    monkeypatch.setattr(extensions, "_by_type", dict(extensions._by_type))
    monkeypatch.setattr(extensions, "_by_namespace", dict(extensions._by_namespace))
    yield
    targets.find_target.cache_clear()


def _program(op: Any) -> torch.export.ExportedProgram:
    ep = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    for node in ep.graph.find_nodes(op="call_function", target=torch.ops.aten.relu.default):
        node.target = op
    return in_dialect(ep, OwnVerifier)


def test_handlers_need_no_base_class_and_no_dialect(registry: None) -> None:
    register_extension(Op, Handler())
    tree = pt2wire.to_tree(_program(Op("relu")))
    assert tree.graph_module.graph.nodes[0].target == "#own:relu"
    assert pt2wire.validate(tree) == []
    (finding,) = pt2wire.validate(_with_target(tree, "#own:gone"))
    assert (finding.rule, finding.path) == ("unknown-operator", "graph_module.graph.nodes[0].target")
    assert finding.message.startswith(
        "from_op_name('gone') of the handler of 'own' failed (KeyError: 'gone')"
    )


class Log:
    """An operator of an extension that returns nothing."""

    __name__ = "log"

    def __call__(self, x: torch.Tensor) -> None:
        pass


class LogVerifier(Verifier):
    dialect = "WIRETESTS_LOG"

    def allowed_op_types(self) -> tuple[type[Any], ...]:
        return (*super().allowed_op_types(), Log)


class _Branches(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))  # type: ignore[no-any-return]


@pytest.mark.parametrize("module", [torch.nn.ReLU(), _Branches()], ids=["program", "branch"])
def test_operators_without_results_come_back(registry: None, module: torch.nn.Module) -> None:
    log, schema = Log(), torch._C.parse_schema("own::log(Tensor x) -> ()")
    register_extension(Log, Handler(from_op_name={"log": log}.__getitem__, op_schema=lambda op: schema))
    ep = torch.export.export(module, (torch.ones(2),))
    inner = getattr(ep.graph_module, "true_graph_0", ep.graph_module)
    place = next(
        node
        for node in inner.graph.nodes
        if node.target in (torch.ops.aten.sin.default, torch.ops.aten.relu.default)
    )
    with inner.graph.inserting_before(place):
        inner.graph.call_function(log, (place.args[0],)).meta["val"] = None
    inner.recompile()
    ep = in_dialect(ep, LogVerifier)
    file = io.BytesIO()
    with pytest.warns(UserWarning, match="export.load will refuse .* the call `log`, which has no results"):
        pt2wire.save(ep, file)
    loaded = pt2wire.load(file)
    assert_same_program(ep, loaded)
    assert torch.equal(loaded.module()(torch.ones(2)), ep.module()(torch.ones(2)))


def _with_target(tree: Any, target: str) -> Any:
    changed = copy.deepcopy(tree)
    changed.graph_module.graph.nodes[0].target = target
    return changed


def test_a_handler_that_only_pytorch_has_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    ep = MODELS["operators_of_an_extension"].program()
    data = saved(ep)
    monkeypatch.setattr(extensions, "_by_type", {})
    monkeypatch.setattr(extensions, "_by_namespace", {})
    targets.find_target.cache_clear()
    assert EdgeOp in torch_serialize._serialization_registry
    with pytest.raises(
        SerializeError, match=r"^sin: .* of type tests\.helpers\.extensions\.EdgeOp\. Register a handler"
    ):
        pt2wire.save(ep, io.BytesIO())
    with pytest.raises(
        DeserializeError,
        match=rf"#{NAMESPACE}:aten\.sin.*Register a handler for the namespace '{NAMESPACE}' before "
        r"loading, with pt2wire\.register_extension",
    ):
        pt2wire.load(io.BytesIO(data))
    assert {finding.rule for finding in pt2wire.validate(io.BytesIO(data))} == {"unknown-operator"}


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"from_op_name": lambda name: eval}, "expected an operator of type Op named 'relu' .* <built-in"),
        ({"from_op_name": lambda name: Op("other")}, "expected an operator of type Op named 'relu'"),
        ({"from_op_name": lambda name: 1 / 0}, r"from_op_name\('relu'\) .* \(ZeroDivisionError"),
        ({"op_schema": lambda op: "relu(Tensor x)"}, "expected a torch.FunctionSchema from the handler"),
    ],
)
def test_what_handlers_make_of_a_file_is_checked(
    registry: None, answers: dict[str, Any], message: str
) -> None:
    tree = pt2wire.to_tree(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)))
    register_extension(Op, Handler(**answers))
    with pytest.raises(DeserializeError, match=message):
        pt2wire.from_tree(_with_target(tree, "#own:relu"), {}, {})


@pytest.mark.parametrize("name", [7, "", "a:b", "a b", "x);import os", "größe", "class Op:"])
def test_names_that_files_cannot_hold_are_refused(registry: None, name: Any) -> None:
    register_extension(Op, Handler(to_op_name=lambda op: name))
    with pytest.raises(SerializeError, match=r"^relu: expected a name of identifiers with dots .* of 'own'"):
        pt2wire.to_tree(_program(Op("relu")))


def test_calls_are_checked_by_the_schema_of_the_handler() -> None:
    tree = pt2wire.to_tree(MODELS["operators_of_an_extension"].program())
    node = next(node for node in tree.graph_module.graph.nodes if node.target.endswith(":aten.max.dim"))
    node.inputs[1].name = "dimension"
    findings = pt2wire.validate(tree)
    assert [finding.rule for finding in findings] == ["operator-arguments"] * 2
    assert "found 'dimension'" in findings[0].message and "'dim' of #wiretests" in findings[1].message
    node.target = f"#{NAMESPACE}:aten.sin"
    assert "expected 1 results of #wiretests" in pt2wire.validate(tree)[-1].message


def test_arguments_beyond_the_schema_are_refused() -> None:
    ep = _program(OPS["aten.sin"])
    next(iter(ep.graph.find_nodes(op="call_function", target=OPS["aten.sin"]))).kwargs = {"dim": 1}
    with pytest.raises(SerializeError, match=r"^relu: expected arguments of aten::sin\(Tensor self\)"):
        pt2wire.to_tree(ep)


def test_wrong_arguments(registry: None) -> None:
    for arguments, error, message in (
        ((Op("x"), Handler()), TypeError, "expected a type of operators"),
        ((type(len), Handler()), ValueError, "expected a type of your own, found builtins"),
        ((torch._ops.OpOverload, Handler()), ValueError, "expected a type of your own, found torch"),
        ((Op, object()), TypeError, "found one without namespace"),
        ((Op, Handler(namespace=None)), TypeError, "expected a namespace as text"),
        ((Op, Handler(namespace="a:b")), ValueError, "expected a namespace of identifiers"),
        ((EdgeOp, Handler()), ValueError, "EdgeOp has a handler already"),
        ((Op, Handler(namespace=NAMESPACE)), ValueError, "has a handler already, for EdgeOp"),
        ((Op, torch_serialize.ExtensionHandler), NotImplementedError, "namespace"),
    ):
        with pytest.raises(error, match=message):
            register_extension(*arguments)  # type: ignore[arg-type]
    assert EdgeHandler.namespace() in extensions._by_namespace and "own" not in extensions._by_namespace
