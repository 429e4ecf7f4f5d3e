"""Lies in the fields of our own about tree specs."""

from __future__ import annotations

from pt2wire.generated import types

from .lies import CALLS, ENUM, Tree, Value, lie, sign

SIGNATURE_IN = f"{CALLS}[0].signature.exact_in_spec"
LEAF = types.TreeSpecNode("")


def _spec(tree: Tree, *nodes: types.TreeSpecNode) -> None:
    """An exact tree spec of the inputs, honest but for what is given: two leaves as positional arguments."""
    sign(tree)
    signature = tree.graph_module.module_call_graph[0].signature
    assert signature is not None
    keywords = types.TreeSpecNode("builtins.dict", Value.of_list([]), 0)
    outer = types.TreeSpecNode("builtins.tuple", None, 2)
    signature.exact_in_spec = [outer, *nodes, keywords]


def _arguments(kind: str = "builtins.tuple", context: Value | None = None) -> types.TreeSpecNode:
    return types.TreeSpecNode(kind, context, 2)


@lie("exact", SIGNATURE_IN, "expected what in_spec says, but for keys and contexts, found another")
def exact_spec_of_another_container(tree: Tree) -> None:
    _spec(tree, types.TreeSpecNode("builtins.tuple", None, 1), _arguments("builtins.list"), LEAF, LEAF)


@lie(
    "treespec",
    SIGNATURE_IN,
    "expected 2 keys, one for each child, found 1 ([1].context)",
)
def exact_spec_with_too_few_keys(tree: Tree) -> None:
    _spec(tree, _arguments("builtins.dict", Value.of_list([ENUM])), LEAF, LEAF)


@lie("treespec", SIGNATURE_IN, "expected different keys, found one twice ([1].context)")
def exact_spec_with_a_key_twice(tree: Tree) -> None:
    _spec(tree, _arguments("builtins.dict", Value.of_list([ENUM, ENUM])), LEAF, LEAF)


@lie("treespec", SIGNATURE_IN, "expected a constant, found as_tensor ([1].context)")
def exact_spec_with_a_tensor_as_key(tree: Tree) -> None:
    tensor = Value.of_tensor(types.TensorArgument("x"))
    _spec(tree, _arguments("builtins.dict", Value.of_list([tensor, ENUM])), LEAF, LEAF)


@lie(
    "treespec",
    SIGNATURE_IN,
    "expected a member of an enum, MODULE:NAME, found 'os.system.x' ([1].context)",
)
def exact_spec_with_a_function_as_enum(tree: Tree) -> None:
    function = Value.of_enum(types.EnumMember("os.system", "x"))
    _spec(tree, _arguments("builtins.dict", Value.of_list([function, ENUM])), LEAF, LEAF)


@lie(
    "treespec",
    SIGNATURE_IN,
    "expected the class of a named tuple, MODULE:NAME, found 'os.system()' ([1].context)",
)
def exact_spec_with_a_call_as_named_tuple(tree: Tree) -> None:
    called = Value.of_named_tuple(types.NamedTupleValue("os.system()", ["x"], [Value.of_int(1)]))
    _spec(tree, _arguments("builtins.dict", Value.of_list([called, ENUM])), LEAF, LEAF)


@lie(
    "treespec",
    f"{CALLS}[0].signature.in_spec",
    'expected a plain text as key, found "a\'+x", which holds a quote, which PyTorch pastes into source '
    "unescaped",
)
def exact_spec_with_source_as_key(tree: Tree) -> None:
    keys = Value.of_list([Value.of_tuple([Value.of_string("a'+x")]), ENUM])
    _spec(tree, types.TreeSpecNode("builtins.tuple", None, 1), _arguments("builtins.dict", keys), LEAF, LEAF)
    tree.beyond = ["members of enums as keys"]
    signature = tree.graph_module.module_call_graph[0].signature
    signature.in_spec, signature.forward_arg_names = "", None


@lie(
    "treespec",
    SIGNATURE_IN,
    "expected None, or a plain container or number, as the default_factory, found "
    "Value(as_string='os.system') ([1].context)",
)
def exact_spec_with_a_function_as_factory(tree: Tree) -> None:
    context = Value.of_tuple([Value.of_string("os.system"), Value.of_list([ENUM, Value.of_int(1)])])
    _spec(tree, _arguments("collections.defaultdict", context), LEAF, LEAF)


@lie("treespec", SIGNATURE_IN, "expected the name of a class, found 'os:system()' ([1].type)")
def exact_spec_of_a_call(tree: Tree) -> None:
    _spec(tree, _arguments("os:system()"), LEAF, LEAF)


@lie("treespec", SIGNATURE_IN, "expected children behind it, found -1 ([1].children)")
def exact_spec_with_less_than_no_children(tree: Tree) -> None:
    _spec(tree, types.TreeSpecNode("builtins.tuple", None, -1), LEAF, LEAF)


@lie("treespec", SIGNATURE_IN, "expected one root, found 1 more nodes behind it")
def exact_spec_with_more_nodes_than_children(tree: Tree) -> None:
    _spec(tree, _arguments(), LEAF, LEAF, LEAF)


@lie("treespec", SIGNATURE_IN, "expected as many nodes as containers have children, found fewer")
def exact_spec_with_fewer_nodes_than_children(tree: Tree) -> None:
    _spec(tree, types.TreeSpecNode("builtins.tuple", None, 3), LEAF)


@lie("treespec", SIGNATURE_IN, "expected a leaf without context and children, found some ([1])")
def exact_spec_with_a_leaf_that_has_children(tree: Tree) -> None:
    _spec(tree, types.TreeSpecNode("", None, 2), LEAF, LEAF)


@lie(
    "treespec",
    f"{CALLS}[0].signature.in_spec",
    "expected JSON, found '': Expecting value: line 1 column 1 (char 0)",
)
def exact_spec_alone_where_pytorch_could_have_one(tree: Tree) -> None:
    _spec(tree, _arguments(), LEAF, LEAF)
    tree.graph_module.module_call_graph[0].signature.in_spec = ""
