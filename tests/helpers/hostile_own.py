"""Hostile fields of our own: values that PyTorch's format cannot hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pt2wire.generated import types

from .hostile import CODE, TRAP, Tree, add, call, graph, signature, tree

# -- tensors that subgraphs hold ----------------------------------------------------------------------------


def _holds(size: int = 3, **changes: Any) -> Callable[[Tree], None]:
    """Lets the first branch add a tensor that it holds, as honest programs do, but for the changes of it."""

    def change(found: Tree) -> None:
        found.beyond = ["tensors that subgraphs hold"]
        found.writer = types.Writer(name="evil", version="1", revision=1)
        branch = next(named.arg for named in call(found, "cond").inputs if named.arg.type == "as_graph")
        held = branch.as_graph.graph
        meta = types.TensorMeta(
            dtype=types.ScalarType.FLOAT,
            sizes=[types.SymInt.of_int(size)],
            requires_grad=False,
            device=types.Device(type="cpu"),
            strides=[types.SymInt.of_int(1)],
            storage_offset=types.SymInt.of_int(0),
            layout=types.Layout.Strided,
        )
        constant = types.GraphConstant(name="held", target="held", data=b"\0\0\x80?" * 3)
        for field, value in changes.items():
            setattr(constant, field, value)
        held.tensor_values["held"] = meta
        held.constants = [constant]
        held.nodes[0].inputs[1].arg = types.Argument.of_tensor(types.TensorArgument("held"))

    return change


def _in_the_top_graph(found: Tree) -> None:
    graph(found).constants = [types.GraphConstant(name="held", target="held", data=bytes(12))]
    graph(found).tensor_values["held"] = graph(found).tensor_values["b_offset"]
    _holds()(found)


_HELD: dict[str, tuple[str, Callable[[Tree], None], str]] = {
    "a held tensor cut short": ("weights", _holds(data=bytes(11)), "tensors stay in their bytes"),
    "a held tensor of 2**60 numbers": ("weights", _holds(1 << 60), "tensors stay in their bytes"),
    "a held tensor in the top graph": ("weights", _in_the_top_graph, "tensors of a program are its inputs"),
    "a held tensor as code": (
        "names",
        _holds(target=f"x\n    {CODE}\n    self.x"),
        "attributes are identifiers",
    ),
    "a held tensor as part of torch.fx": ("names", _holds(target="graph"), "attributes are new"),
    "a held tensor as a table of modules": ("names", _holds(target="_parameters"), "attributes are new"),
}
# -- members of enums as inputs -----------------------------------------------------------------------------


def _input(fqn: str, name: str) -> Callable[[Tree], None]:
    """Lets the text among the inputs be a member of an enum."""

    def change(found: Tree) -> None:
        found.beyond = ["a member of an enum"]
        found.writer = types.Writer(name="evil", version="1", revision=1)
        specs = signature(found).input_specs
        index = next(index for index, spec in enumerate(specs) if spec.type == "constant_input")
        constant = specs[index].constant_input
        constant.value = types.ConstantValue.of_none(True)
        constant.exact_value = types.Value.of_enum(types.EnumMember(fqn, name))
        graph(found).inputs[index] = types.Argument.of_none(True)

    return change


_ENUMS: dict[str, tuple[str, Callable[[Tree], None], str]] = {
    "an input of a module that is not there": (
        "treespecs",
        _input(f"{TRAP}:Color", "RED"),
        "nothing is imported",
    ),
    "an input of a function": ("treespecs", _input("os:system", "RED"), "enums are enums"),
    "an input of a class that is no enum": (
        "treespecs",
        _input("threading:Thread", "start"),
        "enums are enums",
    ),
    "an input that no enum has": ("treespecs", _input("signal:Signals", "RED"), "members are members"),
    "an input that is an attribute": (
        "treespecs",
        _input("signal:Signals", "__class__"),
        "members are members",
    ),
    "an input as code": ("treespecs", _input(f"signal:Signals;{CODE}", "SIGINT"), "names are looked up"),
    "an exact input that is a text": (
        "texts",
        lambda found: (
            _input("signal:Signals", "SIGINT")(found),
            _set_exact(found, types.Value.of_string(CODE)),
        ),
        "texts are checked",
    ),
}


def _set_exact(found: Tree, value: types.Value) -> None:
    for spec in signature(found).input_specs:
        if spec.type == "constant_input":
            spec.constant_input.exact_value = value


for _name, (_kind, _change, _proves) in {**_HELD, **_ENUMS}.items():
    add(_kind, _name, _proves, tree(_change))
