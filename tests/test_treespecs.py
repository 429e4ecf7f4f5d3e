"""Tree specs: the ones that pytree writes come back equal, others are refused and import nothing."""

from __future__ import annotations

import collections
import enum
import json
import sys
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import pt2wire
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pt2wire.errors import DeserializeError
from pt2wire.generated import types
from pt2wire.importing.treespecs import import_treespec
from pt2wire.treespecs import EnumKey, Factory, parse_treespec
from pt2wire.validation.containers import validate_containers
from torch.fx.immutable_collections import immutable_dict, immutable_list
from torch.utils import _pytree as pytree


class Point(NamedTuple):
    x: Any
    y: Any


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass
class Pair:
    left: Any
    right: Any = None


pytree._register_namedtuple(Point, serialized_type_name="pt2wire.tests.treespecs.Point")
pytree.register_dataclass(Pair, serialized_type_name="pt2wire.tests.treespecs.Pair")

_LEAF = {"type": None, "context": None, "children_spec": []}


def _text(kind: str, context: Any, *children: Any) -> str:
    return json.dumps([1, {"type": kind, "context": context, "children_spec": list(children)}])


_TREES = [
    0,
    (),
    [],
    {},
    (1, [2, (3,)], {"a": 4, "b": {"c": 5}}),
    {"a b": 1, 2: 3, None: 4, 2.5: 5},
    OrderedDict(z=1, a=[2]),
    defaultdict(list, {"a": 1}),
    defaultdict(OrderedDict, {"a": 1}),
    deque([1, 2]),
    deque([1, 2], maxlen=5),
    torch.Size([2, 3]),
    immutable_list([1, 2]),
    immutable_dict({"a": 1}),
    Point(1, [2]),
    Pair(1, Pair(2)),
    {Color.RED: 1, Color.BLUE: 2},
    ((1, 2), {"x": Point(Pair(1), 2)}),
]


@pytest.mark.parametrize("tree", _TREES, ids=repr)
def test_a_spec_comes_back_as_pytree_reads_it(tree: Any) -> None:
    spec = pytree.tree_structure(tree)
    text = pytree.treespec_dumps(spec, types.TREESPEC_VERSION)
    found = import_treespec(text, {})
    assert found == spec == pytree.treespec_loads(text)
    assert _shape(found) == _shape(spec)
    assert parse_treespec(text).leaf_count == spec.num_leaves
    leaves = range(spec.num_leaves)
    assert pytree.tree_unflatten(leaves, found) == pytree.tree_unflatten(leaves, spec)
    assert pytree.treespec_dumps(found, types.TREESPEC_VERSION) == text


def _shape(spec: pytree.TreeSpec) -> Any:
    """Specs compare by the name of their classes; this has the classes, and the types of the keys."""
    context = spec.context
    kinds = [type(key) for key in context] if isinstance(context, list) else type(context)
    return spec.type, kinds, context, [_shape(child) for child in spec.children()]


_json_keys = st.one_of(st.text("abc _-.", max_size=5), st.integers(-9, 9), st.booleans(), st.none())
_trees = st.recursive(
    st.just(0),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(_json_keys, inner, max_size=3),
        st.dictionaries(_json_keys, inner, max_size=3).map(OrderedDict),
        st.lists(inner, max_size=3).map(deque),
        st.builds(Point, inner, inner),
        st.builds(Pair, inner),
    ),
    max_leaves=10,
)


@settings(deadline=None)
@given(_trees)
def test_random_specs_come_back_as_pytree_reads_them(tree: Any) -> None:
    spec = pytree.tree_structure(tree)
    assert _shape(import_treespec(pytree.treespec_dumps(spec), {})) == _shape(spec)


def test_tuples_as_keys_come_back_as_tuples() -> None:
    """PyTorch reads them as lists, which cannot be keys."""
    spec = pytree.tree_structure({(1, "a"): 2, (1, (2, 3)): 4})
    assert import_treespec(pytree.treespec_dumps(spec), {}) == spec


def test_the_parsed_nodes() -> None:
    keys = '[1, [2, "x"], {"__enum__": true, "fqn": "a.b:C.D", "name": "E"}]'
    node = parse_treespec(_text("builtins.dict", keys, _LEAF, _LEAF, _LEAF))
    assert node.context == (1, (2, "x"), EnumKey("a.b", "C.D", "E"))
    factory = {"default_factory_module": "builtins", "default_factory_name": "list", "dict_context": ["k"]}
    assert parse_treespec(_text("collections.defaultdict", factory, _LEAF)).context == (
        Factory("builtins", "list"),
        ("k",),
    )
    assert parse_treespec(_text("builtins.list", "null")) is parse_treespec(_text("builtins.list", "null"))


def _factory(module: str, name: str) -> str:
    context = {"default_factory_module": module, "default_factory_name": name, "dict_context": ["k"]}
    return _text("collections.defaultdict", context, _LEAF)


_REFUSED = {
    "not JSON": ("[1, {", "expected JSON, found '[1, {': Expecting property name enclosed in double quotes"),
    "not a pair": ("[1]", "expected [1, {...}] as a tree spec, found [1]"),
    "other protocol": ("[2, {}]", "[0]: expected tree spec protocol 1, found 2"),
    "no children": (
        '[1, {"type": "builtins.list", "context": "null"}]',
        "[1]: expected an object of type, context and children_spec, "
        "found {'type': 'builtins.list', 'context': 'null'}",
    ),
    "leaf with children": (
        json.dumps([1, {"type": None, "context": None, "children_spec": [_LEAF]}]),
        "[1]: expected an object of type, context and children_spec, found {'type': None, 'context': None, "
        "'children_spec': [{'type': None, 'context': None...",
    ),
    "same key twice": ('[1, {"type": null, "type": null}]', "an object with the same key twice"),
    "context of a tuple": (_text("builtins.tuple", "[]"), "[1].context: expected 'null', found '[]'"),
    "fewer keys than children": (
        _text("builtins.dict", '["a"]', _LEAF, _LEAF),
        "[1].context: expected 2 keys, one for each child, found 1",
    ),
    "a key twice": (
        _text("builtins.dict", '["a", "a"]', _LEAF, _LEAF),
        "[1].context: expected different keys, found one twice",
    ),
    "many keys beyond 64 bits": (
        _text("builtins.dict", json.dumps([number << 63 for number in range(1, 258)]), *[_LEAF] * 257),
        "[1].context: expected at most 256 keys that are tuples, long integers or the like, found 257",
    ),
    "an object as key": (
        _text("builtins.dict", '[{"a": 1}]', _LEAF),
        "[1].context[0]: expected a text, number, boolean, enum member or tuple, found {'a': 1}",
    ),
    "a marker with more": (
        _text("builtins.dict", '[{"__enum__": true, "fqn": "os:system", "name": "x", "more": 1}]', _LEAF),
        "[1].context[0]: expected the member of an enum, found",
    ),
    "factory": (
        _factory("os", "system"),
        "[1].context: expected a plain container or number as the default_factory, found 'os.system'",
    ),
    "factory of a module": (
        _factory("pt2wire_marker_module", "list"),
        "[1].context: expected a plain container or number as the default_factory, found "
        "'pt2wire_marker_module.list'",
    ),
    "deque shorter than its items": (
        _text("collections.deque", "1", _LEAF, _LEAF),
        "[1].context: expected 'null' or a length of at least 2, found '1'",
    ),
    "class name": (_text("a;b", "null"), "[1].type: expected the name of a class, found 'a;b'"),
}


@pytest.mark.parametrize("kind", _REFUSED)
def test_what_is_no_treespec_is_refused(kind: str) -> None:
    text, message = _REFUSED[kind]
    with pytest.raises(DeserializeError) as caught:
        parse_treespec(text)
    assert message in str(caught.value)


def test_deep_and_large_texts_are_refused() -> None:
    spec: Any = _LEAF
    for _ in range(150):
        spec = {"type": "builtins.list", "context": "null", "children_spec": [spec]}
    with pytest.raises(DeserializeError, match="nested containers, found more"):
        parse_treespec(json.dumps([1, spec]))
    with pytest.raises(DeserializeError, match="expected JSON"):
        parse_treespec("[" * 100_000)
    with pytest.raises(DeserializeError, match="expected a tree spec of at most"):
        parse_treespec(" " * (17 << 20))


def _enum_key(fqn: str, name: str) -> str:
    return _text("builtins.dict", json.dumps([{"__enum__": True, "fqn": fqn, "name": name}]), _LEAF)


@pytest.mark.parametrize(
    ("fqn", "name"),
    [
        ("pt2wire_marker_module:Marker", "A"),  # not imported
        ("os:system", "A"),  # not an enum
        ("collections:OrderedDict", "A"),
        (f"{__name__}:Color", "GREEN"),  # no such member
        (f"{__name__}:Color", "__class__"),
        (f"{__name__}:missing.Color", "RED"),
    ],
)
def test_enum_keys_are_members_of_imported_enums_only(fqn: str, name: str) -> None:
    with pytest.raises(DeserializeError, match="expected a member of an enum that is imported"):
        import_treespec(_enum_key(fqn, name), {})
    assert "pt2wire_marker_module" not in sys.modules


def test_an_enum_key_does_not_make_a_module_import_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module with a `__getattr__` would import on request."""
    module = type(sys)("pt2wire_lazy_module")
    asked: list[str] = []
    module.__getattr__ = asked.append  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "pt2wire_lazy_module", module)
    with pytest.raises(DeserializeError, match="expected a member of an enum"):
        import_treespec(_enum_key("pt2wire_lazy_module:Marker", "A"), {})
    assert asked == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            _text("some.library.Output", '["x"]', _LEAF),
            "expected a class that is registered with pytree, found",
        ),
        (_text("NO_SERIALIZED_TYPE_NAME_FOUND", "null"), "expected a class that is registered with pytree"),
        (
            _text("collections.namedtuple", "os.stat_result"),
            "expected a class that is registered with pytree",
        ),
        (_text("collections.namedtuple", "builtins.dict"), "expected a named tuple, found 'builtins.dict'"),
        (
            _text("collections.namedtuple", "pt2wire.tests.treespecs.Point", _LEAF),
            "expected 2 fields of 'pt2wire.tests.treespecs.Point', found 1",
        ),
    ],
)
def test_only_registered_classes_are_made(text: str, message: str) -> None:
    with pytest.raises(DeserializeError, match=message):
        import_treespec(text, {})


def test_a_named_tuple_with_other_fields_than_the_saved_one_is_refused() -> None:
    text = _text("collections.namedtuple", "pt2wire.tests.treespecs.Point", _LEAF, _LEAF)
    saved = {"pt2wire.tests.treespecs.Point": types.NamedTupleDef(field_names=["y", "x"])}
    with pytest.raises(DeserializeError, match="as registered here, x, y, found y, x"):
        import_treespec(text, saved)
    saved["pt2wire.tests.treespecs.Point"].field_names = ["x", "y"]
    assert import_treespec(text, saved).context is Point


def test_counter_is_a_factory_like_any_other() -> None:
    spec = pytree.tree_structure(defaultdict(collections.Counter, {"a": 1}))
    assert import_treespec(pytree.treespec_dumps(spec), {}) == spec


_PAIR = "pt2wire.tests.treespecs.Pair"


@pytest.mark.parametrize("context", [[["left", "right"], []], [["left"], ["right"]], [["right"], ["left"]]])
def test_contexts_of_dataclasses_name_fields(context: Any) -> None:
    text = _text(_PAIR, json.dumps(context), *[_LEAF] * len(context[0]))
    spec, items = import_treespec(text, {}), [object()] * len(context[0])
    assert pytree.tree_leaves(pytree.tree_unflatten(items, spec)) == items


@pytest.mark.parametrize("which", ["in_spec", "out_spec"])
@pytest.mark.parametrize(
    "context",
    [
        [["zz"], ["right"]],
        [["left", "right"], []],
        [["left"], None],
        [[["left"]], ["right"]],
        [["left"], ["left"]],
        [["right"], []],
        ["left"],
        {"left": 1},
        None,
    ],
)
def test_contexts_of_dataclasses_that_name_others_are_refused(context: Any, which: str) -> None:
    """`__init__` would be called with these names."""
    text = _text(_PAIR, json.dumps(context), _LEAF)
    with pytest.raises((TypeError, ValueError)):
        pytree.tree_unflatten([1], pytree.treespec_loads(text))
    with pytest.raises(
        DeserializeError, match=r"^expected names of its fields \(left, right\), .* for 'pt2wire"
    ):
        import_treespec(text, {})
    found = validate_containers(_calling(**{which: text}))
    assert [(finding.rule, finding.path.rpartition(".")[2]) for finding in found] == [
        ("unknown-class", which)
    ]


def _calling(**specs: str) -> types.ExportedProgram:
    tree = pt2wire.to_tree(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)))
    for field, text in specs.items():
        setattr(tree.graph_module.module_call_graph[0].signature, field, text)
    return tree


@pytest.mark.parametrize(
    ("kind", "context", "count", "message"),
    [
        ("torch.return_types:sort", None, 1, "expected 2 children and no context"),
        ("torch.return_types:sort", types.Value.of_int(1), 2, "expected 2 children and no context"),
        ("torch._higher_order_ops.flat_apply:_ConstantFunction", None, 0, "which no spec holds"),
        (f"{__name__}:Plain", None, 1, "expected a class that is registered with pytree"),
    ],
)
def test_contexts_of_other_known_classes(kind: str, context: Any, count: int, message: str) -> None:
    nodes = [types.TreeSpecNode(kind, context, count), *[types.TreeSpecNode("")] * count]
    with pytest.raises(DeserializeError, match=message):
        import_treespec("", {}, exact=nodes)


class Plain(NamedTuple):
    x: Any


def test_contexts_of_outputs_of_transformers() -> None:
    outputs = pytest.importorskip("transformers.modeling_outputs")
    spec = pytree.tree_structure(outputs.BaseModelOutput(last_hidden_state=1, attentions=2))
    text = pytree.treespec_dumps(spec)
    assert import_treespec(text, {}) == spec
    for name in ("zz", "last_hidden_state"):
        with pytest.raises(DeserializeError, match="expected names of its fields, one for each child"):
            import_treespec(text.replace("attentions", name), {})
