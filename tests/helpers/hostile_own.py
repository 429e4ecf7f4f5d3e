"""Hostile fields of our own: values that PyTorch's format cannot hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pt2wire.generated import types

from .hostile import CODE, TRAP, Tree, add, call, graph, root, signature, tree

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


# -- functions of nested arguments ----------------------------------------------------------------------

_CALLEE = "torch.export.custom_ops._call_custom_autograd_function_in_pre_dispatch"
_APPLIED = "torch._dynamo._trace_wrapped_higher_order_op.ModIndex"


def _applies(
    callee: str = _CALLEE, applied: str = _APPLIED, leaves: int = 2, target: str = "call", **changes: Any
) -> Callable[[Tree], None]:
    """Lets the call of linear be one of `flat_apply`, as score functions have it, but for the changes."""

    def change(found: Tree) -> None:
        found.beyond = ["calls of flat_apply"]
        found.writer = types.Writer(name="evil", version="1", revision=1)
        nodes = types.TreeSpecNode
        spec = [
            nodes("builtins.tuple", None, 2),
            nodes("builtins.tuple", None, leaves),
            *[nodes("")] * leaves,
        ]
        spec.append(nodes("builtins.dict", types.Value.of_list([])))
        graph(found).structures = [
            types.GraphStructure(name="call", target=target, callee=callee),
            types.GraphStructure(name="nest", target="nest", spec=changes.get("spec", spec)),
        ]
        node = call(found, "aten.linear")
        node.target = changes.get("caller", "torch.ops.higher_order.flat_apply")
        node.is_hop_single_tensor_return = True
        none, x = types.Argument.of_none(True), types.Argument.of_tensor(types.TensorArgument("x"))
        arguments = [none, none, types.Argument.of_string(applied), x]
        node.inputs = [types.NamedArgument("", each, types.ArgumentKind.POSITIONAL) for each in arguments]
        names = changes.get("names", ["call", "nest"])
        exact = [types.Value.of_structure(name) for name in names] + [None, None]
        node.exact_inputs = [types.NamedValue("", each) for each in exact]

    return change


_BY_KEYWORD = [
    types.TreeSpecNode("builtins.tuple", None, 2),
    types.TreeSpecNode("builtins.tuple", None, 0),
    types.TreeSpecNode(
        "builtins.dict",
        types.Value.of_list([types.Value.of_string(key) for key in ("a", "function_cls_name")]),
        2,
    ),
    types.TreeSpecNode(""),
    types.TreeSpecNode(""),
]

_APPLICATIONS: dict[str, tuple[str, Callable[[Tree], None], str]] = {
    "flat_apply of a module that is not there": (
        "targets",
        _applies(applied=f"{TRAP}.Evil"),
        "a table of classes",
    ),
    "flat_apply of a class of the process": (
        "targets",
        _applies(applied="subprocess.Popen"),
        "a table of classes",
    ),
    "flat_apply of a function": ("targets", _applies(callee="os.system"), "a table of functions"),
    "flat_apply of an unknown spec": ("targets", _applies(names=["call", "evil"]), "specs are of the graph"),
    "flat_apply of a spec as function": (
        "targets",
        _applies(names=["nest", "nest"]),
        "specs are no functions",
    ),
    "flat_apply of too many values": ("targets", _applies(leaves=9), "specs fit the values"),
    "flat_apply of a class by keyword": (
        "targets",
        _applies(spec=_BY_KEYWORD),
        "the class that is applied is the first value",
    ),
    "flat_apply by another": (
        "targets",
        _applies(caller="torch.ops.higher_order.with_effects"),
        "no other does",
    ),
    "flat_apply as an argument": (
        "targets",
        lambda found: call(found, "aten.linear").inputs.append(
            types.NamedArgument("", types.Argument.of_operator("torch.ops.higher_order.flat_apply"))
        ),
        "no other does",
    ),
    "flat_apply with code as attribute": (
        "names",
        _applies(target=f"x\n    {CODE}"),
        "attributes are identifiers",
    ),
    "flat_apply with a spec of a module": (
        "treespecs",
        _applies(spec=[types.TreeSpecNode(f"{TRAP}:Evil", None, 0)]),
        "nothing is imported",
    ),
}


for _name, (_kind, _change, _proves) in {**_HELD, **_ENUMS, **_APPLICATIONS}.items():
    add(_kind, _name, _proves, tree(_change))


# -- named tuples in notes, which come back plain where there is no such class ------------------------------


def _noted(fqn: str, fields: str = "x") -> Callable[[Tree], None]:
    """Lets the program have a note that is a named tuple of some class."""

    def change(found: Tree) -> None:
        found.writer = types.Writer(name="evil", version="1", revision=1)
        names = fields.split()
        named = types.NamedTupleValue(fqn, names, [types.Value.of_string(CODE)] * len(names))
        found.graph_module.custom = types.Value.of_named_tuple(named)
        found.graph_module.metadata["custom"] = json.dumps([CODE] * len(names))

    return change


_NAMED_TUPLES = {
    "a note of a module that is not there": (f"{TRAP}:Point", "nothing is imported"),
    "a note of a function": ("os:system", "named tuples are tuples"),
    "a note of a class that is no tuple": ("subprocess:Popen", "named tuples are tuples"),
}
for _name, (_fqn, _proves) in _NAMED_TUPLES.items():
    add("treespecs", _name, _proves, tree(_noted(_fqn)), refused=False)

_UNAME = _noted("platform:uname_result", "system node release version machine")
add(
    "treespecs",
    "a note of a class that starts a program",
    "named tuples have no methods of their own",
    tree(_UNAME),
    refused=False,
)

# -- what registered classes are made of --------------------------------------------------------------------


def _returns(kind: str, context: types.Value | None, *fields: types.TreeSpecNode) -> Callable[[Tree], None]:
    """Lets the program return an object of some class."""

    def change(found: Tree) -> None:
        found.beyond = ["classes that pytree has no name for"]
        found.writer = types.Writer(name="evil", version="1", revision=1)
        root(found).out_spec = ""
        root(found).exact_out_spec = [types.TreeSpecNode(kind, context, len(fields)), *fields]

    return change


_LEAF = types.TreeSpecNode("")
_RETURNED = {
    "an output with too few fields": (
        _returns("torch.return_types:sort", None, _LEAF),
        "all fields are there",
    ),
    "an output with a context": (
        _returns("torch.return_types:_linalg_det", types.Value.of_string(CODE), _LEAF, _LEAF, _LEAF),
        "contexts are what classes make",
    ),
    "an output that is a constant": (
        _returns("torch._higher_order_ops.flat_apply:_ConstantFunction", types.Value.of_string(CODE)),
        "files hold no constants of classes",
    ),
    "an output that is an unregistered named tuple": (
        _returns("inspect:Arguments", None, _LEAF, _LEAF, _LEAF),
        "classes are registered",
    ),
}
for _name, (_change, _proves) in _RETURNED.items():
    add("treespecs", _name, _proves, tree(_change))
