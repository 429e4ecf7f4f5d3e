"""The generated types are those of PyTorch's export schema, and good Python classes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from enum import IntEnum
from pathlib import Path
from typing import Any, get_type_hints

import pt2wire.generated
import pytest
import torch
from hypothesis import given, settings
from pt2wire.codegen.resolve import load_schema
from pt2wire.generated import (
    C10_NAMES,
    TORCH_NAMES,
    Argument,
    ArgumentKind,
    Device,
    Graph,
    InputSpec,
    NamedArgument,
    Node,
    RangeConstraint,
    ScalarType,
    Struct,
    SymInt,
    TensorArgument,
    TokenArgument,
    Union,
    thrift_codec,
    types,
)
from torch._export.serde import schema as pytorch
from torch._export.serde.serialize import _SERIALIZE_TO_TORCH_DTYPE, _dataclass_to_dict

from .helpers.schemas import SCHEMA
from .helpers.strategies import COMPOSITES, trees

GENERATED = Path(pt2wire.generated.__file__).parent
PYTORCH_TYPES = {
    name: cls for name, cls in vars(pytorch).items() if dataclasses.is_dataclass(cls) and inspect.isclass(cls)
}
PYTORCH_ENUMS = {
    name: cls
    for name, cls in vars(pytorch).items()
    if inspect.isclass(cls) and issubclass(cls, IntEnum) and cls is not IntEnum
}


def is_own(cls: type[Any], name: str) -> bool:
    return cls.FIELD_IDS[name] >= 1000


OWN = {name for cls in COMPOSITES for name in cls.FIELD_IDS if is_own(cls, name)}
UNIONS = [cls for cls in COMPOSITES if issubclass(cls, Union)]


@pytest.mark.parametrize("name", PYTORCH_ENUMS)
def test_enums_have_pytorchs_names_and_values(name: str) -> None:
    ours = getattr(types, name)
    assert issubclass(ours, IntEnum)
    assert {value.name: value.value for value in ours} == {v.name: v.value for v in PYTORCH_ENUMS[name]}


@pytest.mark.parametrize("name", PYTORCH_TYPES)
def test_fields_have_pytorchs_names_order_and_ids(name: str) -> None:
    hints = get_type_hints(PYTORCH_TYPES[name], include_extras=True)
    expected = {f.name: hints[f.name].__metadata__[0] for f in dataclasses.fields(PYTORCH_TYPES[name])}
    ours = getattr(types, name)
    found = {field: id_ for field, id_ in ours.FIELD_IDS.items() if not is_own(ours, field)}
    assert list(found.items()) == list(expected.items())


@pytest.mark.parametrize("name", [name for name, cls in PYTORCH_TYPES.items() if not hasattr(cls, "create")])
def test_constructors_take_pytorchs_parameters(name: str) -> None:
    def parameters(cls: type[Any]) -> dict[str, Any]:
        signature = inspect.signature(cls).parameters.values()
        return {p.name: (p.kind, p.default is p.empty) for p in signature}

    ours = getattr(types, name)
    found = {field: facts for field, facts in parameters(ours).items() if not is_own(ours, field)}
    assert list(found.items()) == list(parameters(PYTORCH_TYPES[name]).items())
    assert dataclasses.is_dataclass(ours)


@pytest.mark.parametrize("name", [name for name, cls in PYTORCH_TYPES.items() if not hasattr(cls, "create")])
def test_defaults_are_pytorchs(name: str) -> None:
    theirs, ours = PYTORCH_TYPES[name], getattr(types, name)
    required = [
        f.name
        for f in dataclasses.fields(theirs)
        if inspect.signature(theirs).parameters[f.name].default is inspect.Parameter.empty
    ]
    expected = theirs(**dict.fromkeys(required, "x"))
    found = ours(**dict.fromkeys(required, "x"))
    for field in dataclasses.fields(theirs):
        assert getattr(found, field.name) == getattr(expected, field.name)
    own = [field for field in ours.FIELD_IDS if is_own(ours, field)]
    assert [getattr(found, field) for field in own] == [None] * len(own)


def test_pytorchs_types_are_all_there_and_everything_else_is_our_own() -> None:
    ours = {
        name for name, cls in vars(types).items() if inspect.isclass(cls) and cls.__module__ == types.__name__
    }
    own = {definition.name for definition in load_schema(SCHEMA).types.values() if definition.own}
    assert ours - {"Struct", "Union"} - {*PYTORCH_TYPES, *PYTORCH_ENUMS} == own
    assert {*PYTORCH_TYPES, *PYTORCH_ENUMS} - ours == set()


def test_constants_are_those_of_the_installed_pytorch() -> None:
    assert types.SCHEMA_VERSION == pytorch.SCHEMA_VERSION
    assert types.TREESPEC_VERSION == pytorch.TREESPEC_VERSION
    assert types.OLDEST_VERSION == (8, 2)


def test_torch_names_lead_to_the_dtypes_that_pytorch_writes_for_the_values() -> None:
    dtypes = {int(value): getattr(torch, name) for value, name in TORCH_NAMES[ScalarType].items()}
    assert dtypes == {int(value): dtype for value, dtype in _SERIALIZE_TO_TORCH_DTYPE.items()}


def test_c10_names_are_pytorchs() -> None:
    tables = (pytorch.SCALAR_TYPE_TO_C10, pytorch.LAYOUT_TO_C10, pytorch.MEMORY_FORMAT_TO_C10)
    for table in tables:
        ((name, cls),) = {(type(key).__name__, type(key)) for key in table}
        assert {int(k): v for k, v in C10_NAMES[getattr(types, name)].items()} == {
            int(k): v for k, v in table.items()
        }
        assert cls is getattr(pytorch, name)


@pytest.mark.parametrize(
    "cls", [cls for cls in UNIONS if cls.__name__ in PYTORCH_TYPES], ids=lambda cls: cls.__name__
)
def test_unions_behave_as_pytorchs_for_every_member(cls: type[Any]) -> None:
    theirs = getattr(pytorch, cls.__name__)
    for member in cls.FIELD_IDS:
        found, expected = cls.create(**{member: "x"}), theirs.create(**{member: "x"})
        assert (found.type, found.value) == (expected.type, expected.value) == (member, "x")
        for other in cls.FIELD_IDS:
            for union in (found, expected):
                if other == member:
                    assert getattr(union, other) == "x"
                else:
                    with pytest.raises(AttributeError, match=f"{other} is not set"):
                        getattr(union, other)


@pytest.mark.parametrize("cls", UNIONS, ids=lambda cls: cls.__name__)
def test_fast_constructors_make_the_same_unions(cls: type[Any]) -> None:
    for member in cls.FIELD_IDS:
        fast = getattr(cls, f"of_{member.removeprefix('as_')}")
        assert fast("x") == cls.create(**{member: "x"})


def test_code_that_walks_pytorchs_tree_walks_ours_unchanged() -> None:
    def walk(value: Any) -> Any:
        match value:
            case list():
                return [walk(item) for item in value]
            case dict():
                return {key: walk(item) for key, item in value.items()}
            case _ if hasattr(value, "create"):
                return {value.type: walk(value.value)}
            case _ if dataclasses.is_dataclass(value):
                fields = {f.name: walk(getattr(value, f.name)) for f in dataclasses.fields(value)}
                # Our own fields are unset where the program needs none.
                return {name: item for name, item in fields.items() if item is not None or name not in OWN}
            case _:
                return value

    def build(schema: Any) -> Any:
        arg = schema.Argument.create(as_tensors=[schema.TensorArgument(name="x"), schema.TensorArgument("y")])
        size = schema.SymInt.create(as_expr=schema.SymExpr("s0", schema.SymExprHint.create(as_int=4)))
        node = schema.Node(
            "aten.cat", [schema.NamedArgument("tensors", arg, None)], [], {"k": "v"}, name="cat"
        )
        return schema.Graph([], [arg], [node], {}, {"s0": size}, {})

    assert walk(build(types)) == walk(build(pytorch)) == _dataclass_to_dict(build(pytorch))


def test_a_required_field_left_out_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="missing 3 required positional arguments: 'inputs', 'outputs'"):
        Node("aten.add.Tensor")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'max_val'"):
        RangeConstraint(min_val=None)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "Argument.create() takes exactly one member, found 0"),
        ({"as_int": 1, "as_bool": True}, "Argument.create() takes exactly one member, found 2"),
        ({"as_thing": 1}, "Argument has no member 'as_thing'"),
        ({"as_int": None}, "Argument.as_int cannot be None"),
    ],
)
def test_unions_are_made_of_exactly_one_known_member(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        Argument.create(**arguments)
    assert str(caught.value) == message


def test_unions_have_no_constructor_and_say_what_to_call() -> None:
    with pytest.raises(TypeError, match=r"SymInt has exactly one member: use SymInt.create\(member=value\)"):
        SymInt()


def test_assigning_to_a_member_makes_it_the_one_that_is_set() -> None:
    arg = Argument.of_int(1)
    arg.as_string = "text"
    assert (arg.type, arg.value) == ("as_string", "text")
    assert arg == Argument.create(as_string="text")
    with pytest.raises(AttributeError, match=r"^Argument.as_int is not set; the member set is as_string$"):
        _ = arg.as_int
    with pytest.raises(TypeError, match=r"Argument.as_int cannot be None"):
        arg.as_int = None  # type: ignore[assignment]
    assert arg.as_string == "text"


def test_comparison_is_by_member_and_value() -> None:
    assert Argument.of_int(1) != Argument.of_bool(True)
    assert Argument.of_int(1) == Argument.of_int(1) != Argument.of_int(2)
    assert TensorArgument("x") != TokenArgument("x")
    assert SymInt.of_int(1) != 1
    assert Device("cuda") == Device("cuda", None) != Device("cuda", 0)


@pytest.mark.parametrize("value", [Device("cpu"), Argument.of_int(1)])
def test_mutable_values_are_not_hashable(value: object) -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(value)


def test_objects_have_slots_only() -> None:
    for value in (Device("cpu"), Argument.of_int(1)):
        assert not hasattr(value, "__dict__")
        with pytest.raises(AttributeError):
            value.misspelt = 1  # type: ignore[union-attr]


def test_container_defaults_are_not_shared() -> None:
    first, second = (Graph([], [], [], {}, {}, {}) for _ in range(2))
    first.custom_obj_values["x"] = types.CustomObjArgument("x", "C")
    assert second.custom_obj_values == {}


def test_match_statements_take_structs_and_unions_apart() -> None:
    node = Node("aten.add", [NamedArgument("self", Argument.of_tensor(TensorArgument("x")))], [], {})
    match node:
        case Node("aten.add", [NamedArgument(name, Argument(as_tensor=TensorArgument(tensor)))]):
            assert (name, tensor) == ("self", "x")
        case _:
            pytest.fail("the pattern does not match")
    match Argument.of_int(3):
        case Argument(as_string=_) | Argument("as_bool", _):
            pytest.fail("a pattern for another member matches")
        case Argument("as_int", value):
            assert value == 3


@pytest.mark.parametrize("cls", COMPOSITES, ids=lambda cls: cls.__name__)
def test_copies_and_pickles_are_equal_and_independent(cls: type[Any]) -> None:
    @settings(max_examples=5, deadline=None, database=None)
    @given(trees(cls))
    def check(tree: Any) -> None:
        for copied in (copy.deepcopy(tree), pickle.loads(pickle.dumps(tree))):
            assert copied is not tree
            assert thrift_codec.encode(copied) == thrift_codec.encode(tree)

    check()


def test_the_repr_leaves_out_additions_of_ours_that_are_unset() -> None:
    node = Node("sin", [], [], {})
    theirs = [field for field in dataclasses.fields(Node) if not field.kw_only]
    unset = "".join(f", {field.name}=None" for field in theirs if field.default is None)
    assert repr(node) == f"Node(target='sin', inputs=[], outputs=[], metadata={{}}{unset})"
    node.exact_inputs = []
    assert repr(node).endswith("=None, exact_inputs=[])")


def test_the_repr_of_a_big_tree_is_short() -> None:
    args = [NamedArgument(f"arg{i}", Argument.of_ints(list(range(1000)))) for i in range(100)]
    nodes = [Node("aten.add.Tensor" * 100, args, [], {str(i): "x" * 1000 for i in range(100)})] * 1000
    text = repr(Graph([], [Argument.of_int(1)], nodes, {}, {}, {}))
    assert len(text) < 3000
    assert text.startswith(
        "Graph(inputs=[], outputs=[Argument(as_int=1)], nodes=[Node(target='aten.add.Tensor"
    )
    assert "... 996 more]" in text


def test_the_repr_of_small_values_is_complete() -> None:
    assert repr(Device("cuda", 1)) == "Device(type='cuda', index=1)"
    assert repr(SymInt.of_int(2)) == "SymInt(as_int=2)"
    assert repr(InputSpec.of_token(types.InputTokenSpec(TokenArgument("t")))) == (
        "InputSpec(token=InputTokenSpec(arg=TokenArgument(name='t')))"
    )
    assert repr(NamedArgument("x", Argument.of_bool(True), ArgumentKind.KEYWORD)) == (
        "NamedArgument(name='x', arg=Argument(as_bool=True), kind=<ArgumentKind.KEYWORD: 2>)"
    )


def test_structs_and_unions_can_be_told_apart_by_their_base() -> None:
    assert all(issubclass(cls, Struct) != issubclass(cls, Union) for cls in COMPOSITES)


def test_neither_types_nor_codecs_import_torch() -> None:
    code = "import sys\nfrom pt2wire.generated import json_codec, thrift_codec\nprint('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("command", [["format", "--check"], ["check"]])
def test_generated_modules_are_clean_as_rendered(command: list[str]) -> None:
    files = sorted(map(str, GENERATED.glob("*.py")))
    done = subprocess.run([sys.executable, "-m", "ruff", *command, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
