"""Arguments of nodes: every member of `Argument`, chosen as PyTorch chooses, or a refusal that says why."""

from __future__ import annotations

import enum
import math
import operator
from dataclasses import dataclass

import pytest
import torch
from pt2wire.errors import SerializeError
from pt2wire.exporting import export_program
from pt2wire.exporting.arguments import export_argument
from pt2wire.exporting.targets import export_target
from pt2wire.exporting.values import Program, Values
from pt2wire.generated import json_codec, types
from torch._export.serde.serialize import SerializeError as PyTorchSerializeError
from torch.export import Dim
from torch.fx import Graph, Node

from .helpers.exporting import assert_json_is_pytorchs, exported, members_of, pytorch_argument

_LIBRARY = torch.library.Library("pt2wire_arguments", "DEF")  # kept: the operator goes when this does
_LIBRARY.define(
    "every_kind(Tensor x, str[] texts, float[] floats, bool[] flags, int[]? ints, Tensor?[] optionals, "
    "Tensor[] tensors, *, Scalar scalar, ScalarType? dtype=None, Layout? layout=None, "
    "MemoryFormat? memory_format=None, Device? device=None, str text='x', SymInt[] sizes=[], "
    "bool flag=False, float number=1.5, int[]? no_ints=None, float[]? no_floats=None, "
    "Tensor[]? no_tensors=None, Scalar[]? scalars=None) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)
_LIBRARY.impl("every_kind", lambda x, *args, **kwargs: x.clone(), "CompositeExplicitAutograd")
torch.library.register_fake(
    "pt2wire_arguments::every_kind", lambda x, *args, **kwargs: x.clone(), lib=_LIBRARY
)
every_kind = torch.ops.pt2wire_arguments.every_kind.default


def test_every_member_for_values_and_lists():
    def forward(self, x):
        return every_kind(
            x, ["a", "b"], [1.5, 2.5], [True, False], [1, 2], [x, None, x], [x, x], scalar=3,
            dtype=torch.float16, layout=torch.strided, memory_format=torch.channels_last,
            device=torch.device("cuda:3"), text="hey", sizes=[x.shape[0], 3, x.shape[0] * 2], flag=True,
            number=math.inf,
        )  # fmt: skip

    tree = assert_json_is_pytorchs(exported(forward, torch.randn(3, 4), shapes=({0: Dim.AUTO},)))
    assert members_of(tree, "torch.ops.pt2wire_arguments.every_kind.default") == [
        {
            "x": "as_tensor",
            "texts": "as_strings",
            "floats": "as_floats",
            "flags": "as_bools",
            "ints": "as_ints",
            "optionals": "as_optional_tensors",
            "tensors": "as_tensors",
            "scalar": "as_int",
            "dtype": "as_scalar_type",
            "layout": "as_layout",
            "memory_format": "as_memory_format",
            "device": "as_device",
            "text": "as_string",
            "sizes": "as_sym_ints",
            "flag": "as_bool",
            "number": "as_float",
        }
    ]


def test_empty_lists_take_the_member_of_the_schema():
    def forward(self, x):
        return every_kind(
            x, [], [], [], [], [], [], scalar=2.5, no_ints=[], no_floats=[], no_tensors=[]
        )  # fmt: skip

    (members,) = members_of(
        assert_json_is_pytorchs(exported(forward, torch.randn(3))),
        "torch.ops.pt2wire_arguments.every_kind.default",
    )
    assert members["texts"] == "as_strings"
    assert members["flags"] == "as_bools"
    assert members["ints"] == members["no_ints"] == "as_ints"
    assert members["floats"] == members["no_floats"] == "as_floats"
    assert members["optionals"] == members["tensors"] == members["no_tensors"] == "as_tensors"


def test_what_has_no_member_is_written_as_it_is_and_said_to_be_beyond_pytorch():
    def forward(self, x):
        return every_kind(x, [], [], [], None, [], [], scalar=1, scalars=[])

    ep = exported(forward, torch.randn(3))
    with pytest.warns(UserWarning, match="an argument of `every_kind` .expected items, found an empty list"):
        tree = export_program(ep)
    node = next(node for node in tree.graph_module.graph.nodes if node.name == "every_kind")
    inputs = {named.name: named.arg for named in node.inputs}
    exact = {named.name: named.value for named in node.exact_inputs}
    assert inputs["scalars"] == types.Argument.of_none(True)
    assert exact.pop("scalars") == types.Value.of_list([])
    assert set(exact.values()) == {None}
    assert len(tree.beyond) == 1 and tree.writer is not None


def test_none_in_a_list_of_optional_tensors():
    def forward(self, x, index):
        return x[:, index], x[index, :, index], every_kind(x, [], [], [], None, [None, None], [], scalar=True)

    assert_json_is_pytorchs(exported(forward, torch.randn(4, 4, 4), torch.tensor([0, 1])))


def test_special_floats_and_complex_numbers():
    def forward(self, x, z):
        return x.clamp(-math.inf, math.inf), torch.full((2,), math.nan), z * (1 + 2j)

    assert_json_is_pytorchs(exported(forward, torch.randn(3), torch.randn(3, dtype=torch.complex64)))


def test_symbolic_numbers_as_arguments():
    def forward(self, x, n):
        size = x.shape[0]
        return x * n, x * size**0.5, x.new_zeros(size // 2, n), torch.where(x > 0, x, torch.sym_float(size))

    assert_json_is_pytorchs(exported(forward, torch.randn(8, 3), 5, shapes=({0: Dim.AUTO}, Dim.AUTO)))


def test_operators_as_arguments():
    def forward(self, x):
        return torch.ops.higher_order.out_dtype(torch.ops.aten.mm.default, torch.int32, x, x)

    tree = assert_json_is_pytorchs(exported(forward, torch.ones(3, 3, dtype=torch.int8)))
    assert tree.graph_module.graph.nodes[0].inputs[0].arg.as_operator == "torch.ops.aten.mm.default"


@pytest.fixture
def nodes() -> tuple[Values, dict[str, Node]]:
    """Four nodes of a graph, each named after the kind of value that it stands for."""
    graph, values = Graph(), Values(Program())
    made = {kind: graph.placeholder(kind) for kind in ("tensor", "sym_int", "sym_float", "sym_bool")}
    values.references = {node: (f"as_{kind}", kind) for kind, node in made.items()}
    return values, made


@dataclass(frozen=True)
class N:
    """Stands for a node in the tables below."""

    kind: str


def _with_nodes(argument, made):
    match argument:
        case N(kind):
            return made[kind]
        case list() | tuple():
            return type(argument)(_with_nodes(item, made) for item in argument)
        case dict():
            return {key: _with_nodes(item, made) for key, item in argument.items()}
    return argument


@pytest.mark.parametrize(
    ("argument", "member"),
    [
        ([True, False], "as_bools"),
        ((1, 2), "as_ints"),
        ([1.0, 2.0], "as_floats"),
        (["a"], "as_strings"),
        ([1, N("sym_int")], "as_sym_ints"),
        ([N("sym_int")], "as_sym_ints"),
        ([1.5, N("sym_float")], "as_sym_floats"),
        ([True, N("sym_bool")], "as_sym_bools"),
        ([N("tensor")], "as_tensors"),
        ([N("tensor"), N("sym_int"), N("sym_bool")], "as_tensors"),
        ([None], "as_optional_tensors"),
        ([N("tensor"), None], "as_optional_tensors"),
        ([[N("tensor")], []], "as_nested_tensors"),
        ([[], []], "as_nested_tensors"),
        ([(1, 2), ()], "as_int_lists"),
        ([[1.5], (2.5,), []], "as_float_lists"),
        ({"a": 1, "b": {"c": [N("tensor")]}}, "as_string_to_argument"),
        ({}, "as_string_to_argument"),
        ([], "as_tensors"),
        (1 + 2j, "as_complex"),
        (torch.device("cuda", 1), "as_device"),
    ],
)  # fmt: skip
def test_the_member_is_chosen_by_type_as_pytorch_chooses(nodes, argument, member):
    values, made = nodes
    argument = _with_nodes(argument, made)
    found = export_argument(argument, values)
    assert found.type == member
    assert json_codec.to_plain(found) == pytorch_argument(argument, values)


@pytest.mark.parametrize(
    ("argument", "found"),
    [
        ([1, 2.5], "float, int"),
        ([1, True], "bool, int"),
        ([N("tensor"), 1], "as_tensor, int"),
        ([[1, 2]], r"\[int\]"),
        ([(1, 2), []], r"\(int\), \[\]"),
        ([[N("tensor")], None], r"NoneType, \[node\]"),
        ([[1, "a"]], r"\[mixed\]"),
        (slice(1, 2), r"slice \(slice\(1, 2, None\)\)"),
        ({1: 2}, "the key 1"),
    ],
)  # fmt: skip
def test_what_no_member_holds_is_refused_by_type(nodes, argument, found):
    values, made = nodes
    argument = _with_nodes(argument, made)
    with pytest.raises(SerializeError, match=f"found .*{found}"):
        export_argument(argument, values)
    with pytest.raises(PyTorchSerializeError):
        pytorch_argument(argument, values)


@pytest.mark.parametrize("member", [enum.Enum("Mode", "FAST"), enum.IntEnum("Mode", "FAST")])
def test_enum_members_are_refused_not_written_as_numbers(nodes, member):
    with pytest.raises(SerializeError, match=r"found .*Mode"):
        export_argument(member.FAST, nodes[0])


def test_a_node_without_a_value_is_refused_by_name(nodes):
    values, made = nodes
    stray = made["tensor"].graph.placeholder("stray")
    with pytest.raises(SerializeError, match=r"found node `stray` \(placeholder\), whose value is None"):
        export_argument([stray, made["tensor"]], values)


@pytest.mark.parametrize(
    ("target", "name"),
    [
        (torch.ops.aten.add.Tensor, "torch.ops.aten.add.Tensor"),
        (torch.ops.aten.relu.default, "torch.ops.aten.relu.default"),
        (torch.ops.higher_order.cond, "torch.ops.higher_order.cond"),
        (operator.mul, "_operator.mul"),
        (math.trunc, "math.trunc"),
        (torch.sym_max, "torch.sym_max"),
        (torch.sym_sqrt, "torch._sym_sqrt"),
        ("linear", "linear"),
    ],
)
def test_full_names_of_what_a_node_calls(target, name):
    assert export_target(target) == name
