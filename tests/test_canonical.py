"""The canonical form: PyTorch's where that is well defined, one for all spellings, and a program still."""

from __future__ import annotations

import ast
import copy
import importlib
import json
import random
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import pt2wire
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pt2wire.comparing.effects import DRAWS, IN_PLACE, _changed, _sharing
from pt2wire.comparing.naming import Call
from pt2wire.errors import DeserializeError, SerializeError
from pt2wire.generated import json_codec, types
from torch._export.serde import schema
from torch._export.serde import serialize as torch_serialize

from .helpers.models import MODELS
from .helpers.oracles import grouped, json_differences, trips_of, without_own_fields
from .helpers.scrambling import scrambled
from .helpers.synthetic import synthetic_program

# Models in which PyTorch finds nodes equal that are not, and then keeps the order that it was given.
TIED = {
    "dtypes_and_devices",
    "loss_and_gradients",
    "loss_and_gradients_with_attention",
    "loss_and_gradients_with_pooling",
}
# Models in which PyTorch moves a node over another that changes what it reads, or may do so: nothing is known
# of what operators of extensions change; `associative_scan`, `jvp` and `vmap` open levels of functorch, which
# hold for the nodes until they are closed.
MOVED = {
    "higher_order_operators",
    "in_place_operators",
    "jvp",
    "jvp_of_jvp_strict",
    "operators_of_an_extension",
    "random_operators",
    "vmap",
}
SEEDS = st.integers(0, 10**9)
# Models whose subgraphs hold tensors.
HOLDING = ("cond_that_makes_tensors", "scan_that_makes_tensors_strict")
FAMILIES = ("bert_static", "gpt2_dynamic")


@cache
def tree_of(name: str) -> types.ExportedProgram:
    trips = trips_of(name)
    return pt2wire.to_tree(trips.program) if name in HOLDING else pt2wire.from_json(trips.our_json)


def as_json(tree: types.ExportedProgram) -> Any:
    return without_own_fields(json.loads(pt2wire.to_json(tree)))


def torchs_form(tree: types.ExportedProgram, constants: set[str]) -> Any:
    program = torch_serialize._dict_to_dataclass(schema.ExportedProgram, as_json(tree))
    form = torch_serialize.canonicalize(program, constants)
    return json.loads(json.dumps(torch_serialize._dataclass_to_dict(form), cls=torch_serialize.EnumEncoder))


def comparable(form: Any) -> Any:
    """A canonical form in JSON without that in which ours is not to be PyTorch's."""
    module = form["graph_module"]
    # Both sort guards, PyTorch as they are spelled, we as loading spells them.
    form["guards_code"] = sorted(ast.unparse(ast.parse(x, mode="eval")) for x in form["guards_code"])
    # PyTorch drops the names of fields of named tuples, which importing needs.
    del module["treespec_namedtuple_fields"]
    # It leaves the values of these signatures with names that nothing has any more.
    _blank_names(module["module_call_graph"])
    # It leaves nodes and constant inputs with the names they had, which are no part of the meaning.
    _blank_node_names(module["graph"])
    # It moves constant inputs behind all others, so that a call would give them other values.
    pairs = list(zip(module["graph"]["inputs"], module["signature"]["input_specs"], strict=True))
    constants = [pair for pair in pairs if "constant_input" in pair[1]]
    for _, spec in constants:
        spec["constant_input"]["name"] = ""
    others = [pair for pair in pairs if "constant_input" not in pair[1]]
    pairs = [*others, *sorted(constants, key=json.dumps)]
    module["graph"]["inputs"] = [argument for argument, _ in pairs]
    module["signature"]["input_specs"] = [spec for _, spec in pairs]
    return form


def _blank_names(part: Any) -> None:
    if isinstance(part, list):
        for item in part:
            _blank_names(item)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key in ("name", "as_name"):
                part[key] = ""
            else:
                _blank_names(value)


def _blank_node_names(graph: Any) -> None:
    for node in graph["nodes"]:
        node["name"] = None
        for named in node["inputs"]:
            if "as_graph" in named["arg"]:
                _blank_node_names(named["arg"]["as_graph"]["graph"])


@pytest.mark.parametrize("name", grouped(MODELS))
def test_is_pytorchs_form(name: str) -> None:
    tree = tree_of(name)
    ours = comparable(as_json(pt2wire.canonicalize(tree)))
    theirs = comparable(torchs_form(tree, set(trips_of(name).program.constants)))
    if name in TIED | MOVED:
        assert ours != theirs, f"{name} needs no exception any more"
    else:
        assert list(json_differences("", _sorted(theirs), _sorted(ours))) == []


@pytest.mark.parametrize("name", grouped(sorted(set(MODELS) - MOVED)))
def test_pytorch_leaves_our_form_as_it_is(name: str) -> None:
    """Where PyTorch keeps the order of nodes, ours is one that it keeps."""
    form = pt2wire.canonicalize(tree_of(name))
    theirs = comparable(torchs_form(form, set(trips_of(name).program.constants)))
    assert list(json_differences("", _sorted(theirs), _sorted(comparable(as_json(form))))) == []


def _sorted(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _sorted(part[key]) for key in sorted(part)}
    return [_sorted(item) for item in part] if isinstance(part, list) else part


def test_pytorchs_form_depends_on_the_order_of_equal_nodes() -> None:
    """Why there are exceptions."""
    tree = tree_of("dtypes_and_devices")
    forms = {
        json.dumps(torchs_form(scrambled(tree, random.Random(seed)), set())["graph_module"]["graph"])
        for seed in range(4)
    }
    assert len(forms) > 1


@pytest.mark.parametrize("name", grouped([*MODELS, *HOLDING]))
def test_every_spelling_has_one_form(name: str) -> None:
    tree = tree_of(name)
    before = json_codec.encode(tree)
    form = json_codec.encode(pt2wire.canonicalize(tree))
    assert json_codec.encode(tree) == before, "the input was changed"
    for seed in range(2):  # random graphs, below, are spelled in more ways
        other = scrambled(tree, random.Random(seed))
        assert json_codec.encode(pt2wire.canonicalize(other)) == form
    assert json_codec.encode(pt2wire.canonicalize(pt2wire.canonicalize(tree))) == form


@pytest.mark.parametrize("name", ["flex_attention_with_a_score_function", "members_of_enums_as_inputs"])
def test_what_is_beyond_pytorch_has_one_form_whatever_it_is_called(name: str) -> None:
    """The words for what is beyond PyTorch name nodes, and are written after these had got other names."""
    case = trips_of(name).case
    tree, other = pt2wire.to_tree(case.program()), case.program()
    for node in list(other.graph.nodes):
        if node.op in ("placeholder", "call_function"):
            old = node.name
            node._rename(f"other_{old}")
            other.graph_signature.replace_all_uses(old, node.name)
    renamed = pt2wire.to_tree(other)
    assert renamed.beyond and renamed.beyond != tree.beyond
    assert pt2wire.canonicalize(renamed) == pt2wire.canonicalize(tree)
    assert pt2wire.diff(tree, renamed) == []


@pytest.mark.parametrize("name", grouped(FAMILIES))
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=SEEDS)
def test_every_spelling_of_a_family_has_one_form(name: str, seed: int) -> None:
    tree = tree_of(name)
    assert pt2wire.canonicalize(scrambled(tree, random.Random(seed))) == pt2wire.canonicalize(tree)


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(0, 40),
    shape=SEEDS,
    unused=st.booleans(),
    seed=SEEDS,
)
def test_every_spelling_of_a_random_graph_has_one_form(
    size: int, shape: int, unused: bool, seed: int
) -> None:
    tree = synthetic_program(size, random.Random(shape), unused=unused)
    assert pt2wire.canonicalize(scrambled(tree, random.Random(seed))) == pt2wire.canonicalize(tree)


@pytest.mark.parametrize("name", grouped([*MODELS, *HOLDING]))
def test_form_is_a_program_that_computes_the_same(name: str) -> None:
    trips = trips_of(name)
    form = pt2wire.canonicalize(tree_of(name))
    allowed = {"denied-operator"} if trips.case.operators else set()
    assert {finding.rule for finding in pt2wire.validate(form)} == allowed
    again = pt2wire.from_tree(
        form, trips.program.state_dict, trips.program.constants, allow_operators=trips.case.operators
    )
    found, expected = trips.outputs(again), trips.outputs(trips.ours_of_ours)
    if trips.case.flat:  # gradients are sorted, by the weights that they belong to
        assert [sorted(each.values()) for each in found] == [sorted(each.values()) for each in expected]
    else:
        assert found == expected


def _attention(name: str) -> tuple[types.ExportedProgram, types.Node, str]:
    """A program, its call of `flex_attention`, and where that is."""
    tree = pt2wire.to_tree(trips_of(name).program)
    nodes = tree.graph_module.graph.nodes
    number = next(number for number, node in enumerate(nodes) if node.subgraphs)
    return tree, nodes[number], f"graph_module.graph.nodes[{number}]"


def _without_subgraphs() -> tuple[types.ExportedProgram, str]:
    tree, node, path = _attention("flex_attention_with_a_score_function")
    node.subgraphs = None
    return tree, path


def _without_structures() -> tuple[types.ExportedProgram, str]:
    tree, node, path = _attention("flex_attention_with_a_bias")
    score = next(named.arg.as_graph for named in node.inputs if named.arg.type == "as_graph")
    score.graph.structures = None
    targets = [inner.target.rpartition(".")[2] for inner in score.graph.nodes]
    return tree, f"{path}.{score.name}.nodes[{targets.index('flat_apply')}]"


@pytest.mark.parametrize(
    ("broken", "holder"),
    [(_without_subgraphs, "node's subgraphs"), (_without_structures, "graph's tree specs")],
)
def test_a_reference_to_nothing_is_an_error_of_the_program(
    broken: Callable[[], tuple[types.ExportedProgram, str]], holder: str
) -> None:
    tree, path = broken()
    for work in (pt2wire.canonicalize, pt2wire.digest, lambda tree: pt2wire.diff(tree, tree)):
        with pytest.raises(DeserializeError, match=f"expected one of the {holder}, found") as caught:
            work(copy.deepcopy(tree))
        assert caught.value.path == path


def tensor(name: str) -> types.Argument:
    return types.Argument.create(as_tensor=types.TensorArgument(name))


def program_of(*calls: tuple[str, list[str], str | None], outputs: list[str]) -> types.ExportedProgram:
    """A program of the inputs x and y; each call is a target, the arguments and the result."""
    tree = synthetic_program(0, random.Random(0))
    module = tree.graph_module
    graph = module.graph
    meta = graph.tensor_values["x0"]
    nodes = [
        types.Node(
            f"torch.ops.{target}",
            [types.NamedArgument(f"a{i}", tensor(name)) for i, name in enumerate(arguments)],
            [] if result is None else [tensor(result)],
            {},
        )
        for target, arguments, result in calls
    ]
    values = ["x", "y", *(result for _, _, result in calls if result is not None)]
    module.graph = types.Graph(
        [tensor("x"), tensor("y")],
        [tensor(name) for name in outputs],
        nodes,
        dict.fromkeys(values, meta),
        {},
        {},
    )
    module.signature = types.GraphSignature(
        [types.InputSpec.create(user_input=types.UserInputSpec(tensor(name))) for name in ("x", "y")],
        [types.OutputSpec.create(user_output=types.UserOutputSpec(tensor(name))) for name in outputs],
    )
    return tree


ADD_ = ("aten.add_.Tensor", ["x", "y"], "changed")
READ = ("aten.relu.default", ["x"], "read")


@pytest.mark.parametrize(
    ("change", "read"),
    [
        (ADD_, READ),
        (("aten.add.out", ["x", "y"], "changed"), READ),
        (("aten._cummax_helper.default", ["x", "y"], None), READ),
        (("mine.update.default", ["x"], None), READ),
        (("mine.update_.default", ["x"], "changed"), ("mine.read.default", ["x"], "read")),
        (("aten.__iadd__.Tensor", ["x", "y"], "changed"), READ),
    ],
)
def test_a_read_stays_on_its_side_of_a_change(change: Any, read: Any) -> None:
    first = pt2wire.canonicalize(program_of(change, read, outputs=["read"]))
    second = pt2wire.canonicalize(program_of(read, change, outputs=["read"]))
    assert [node.target for node in first.graph_module.graph.nodes] == [
        f"torch.ops.{change[0]}",
        f"torch.ops.{read[0]}",
    ]
    assert [node.target for node in second.graph_module.graph.nodes] == [
        f"torch.ops.{read[0]}",
        f"torch.ops.{change[0]}",
    ]


def test_a_read_through_a_view_stays_on_its_side_of_a_change() -> None:
    view = ("aten.view.default", ["x"], "view")
    change = ("aten.zero_.default", ["view"], "changed")
    forms = [
        pt2wire.canonicalize(program_of(view, *calls, outputs=["read"]))
        for calls in ((change, READ), (READ, change))
    ]
    assert forms[0] != forms[1]


@pytest.mark.parametrize(
    "same", ["aten.lift.default", "prims.device_put.default", "aten.sparse_coo_tensor.indices_size"]
)
def test_a_read_through_what_gives_its_argument_back_stays_on_its_side(same: str) -> None:
    read = ("aten.relu.default", ["same"], "read")
    change = ("aten.zero_.default", ["x"], "changed")
    forms = [
        pt2wire.canonicalize(program_of((same, ["x"], "same"), *calls, outputs=["read"]))
        for calls in ((change, read), (read, change))
    ]
    assert forms[0] != forms[1]


def test_what_an_operator_works_on_is_found_by_name() -> None:
    forms = []
    for calls in ((ADD_, READ), (READ, ADD_)):
        tree = program_of(*calls, outputs=["read"])
        (add,) = (node for node in tree.graph_module.graph.nodes if node.target.endswith("add_.Tensor"))
        changed, other = add.inputs
        changed.name, other.name = "self", "other"
        add.inputs = [other, changed]
        forms.append(pt2wire.canonicalize(tree))
    assert forms[0] != forms[1]


def test_names_of_one_held_tensor_are_told_from_those_of_equal_ones() -> None:
    forms = []
    for target in ("one", "other"):
        tree = program_of(READ, outputs=["read"])
        graph = tree.graph_module.graph
        graph.constants = [
            types.GraphConstant(name=name, target=held, data=b"")
            for name, held in (("a", "one"), ("b", target))
        ]
        graph.tensor_values |= dict.fromkeys("ab", graph.tensor_values["x"])
        forms.append(pt2wire.canonicalize(tree))
    assert forms[0] != forms[1]


def test_a_change_of_other_memory_moves_freely() -> None:
    change = ("aten.zero_.default", ["y"], "changed")
    copy = ("aten.clone.default", ["y"], "copy")
    forms = [
        pt2wire.canonicalize(program_of(copy, *calls, outputs=["read"]))
        for calls in ((change, READ), (READ, change))
    ]
    assert forms[0] == forms[1]


NORMAL = ("aten.randn_like.default", ["x"], "normal")
UNIFORM = ("aten.rand_like.default", ["y"], "uniform")


@pytest.mark.parametrize("outputs", [["normal", "uniform"], []], ids=["used", "unused"])
def test_draws_of_random_numbers_stay_in_their_order(outputs: list[str]) -> None:
    orders = [
        (NORMAL, UNIFORM, READ),
        (NORMAL, READ, UNIFORM),
        (READ, NORMAL, UNIFORM),
        (UNIFORM, NORMAL, READ),
    ]
    first, second, third, swapped = [
        pt2wire.canonicalize(program_of(*calls, outputs=[*outputs, "read"])) for calls in orders
    ]
    assert first == second == third != swapped
    assert pt2wire.digest(first) != pt2wire.digest(swapped)


def _dropping(name: str, p: float, train: bool) -> types.ExportedProgram:
    """Two dropouts of an input each, the one with this name of its result first."""
    names = sorted(("x", "y"), key=lambda each: each != name)
    calls = [("aten.dropout.default", [each], f"{each}_dropped") for each in names]
    tree = program_of(*calls, outputs=["x_dropped", "y_dropped"])
    for node in tree.graph_module.graph.nodes:
        node.inputs.append(types.NamedArgument("p", types.Argument.of_float(p)))
        node.inputs.append(types.NamedArgument("train", types.Argument.of_bool(train)))
    return tree


@pytest.mark.parametrize(
    ("p", "train", "draws"), [(0.5, True, True), (0.5, False, False), (0.0, True, False)]
)
def test_what_draws_nothing_now_moves_freely(p: float, train: bool, draws: bool) -> None:
    forms = [pt2wire.canonicalize(_dropping(name, p, train)) for name in ("x", "y")]
    assert (forms[0] != forms[1]) is draws


def test_the_table_of_draws_is_that_of_the_installed_pytorch() -> None:
    importlib.import_module("torch._inductor.inductor_prims")  # which registers some
    tagged = set()
    for full_name in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = full_name.partition("::")
        name, _, overload = rest.partition(".")
        if namespace in ("aten", "prims", "rngprims"):
            operator = getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")
            if torch.Tag.nondeterministic_seeded in operator.tags:
                tagged.add(f"{namespace}.{name}")
                parameters = {argument.name for argument in operator._schema.arguments}
                assert parameters.issuperset(DRAWS[f"{namespace}.{name}"]), operator
    assert tagged == set(DRAWS)


def test_tables_of_effects_know_the_installed_pytorch() -> None:
    """Every operator of aten and prims that changes or views an argument is known by name or table."""
    unknown = []
    for operator in torch._C._jit_get_all_schemas():
        namespace, _, name = operator.name.partition("::")
        # Instructions of TorchScript work on lists, dictionaries and generators.
        tensors = [argument for argument in operator.arguments if "Tensor" in str(argument.type)]
        if namespace not in ("aten", "prims") or not tensors or any("Dict(" in str(a.type) for a in tensors):
            continue
        overload = operator.overload_name or "default"
        outputs = [r for r in operator.returns if r.alias_info is not None]
        changed = [a for a in tensors if a.alias_info is not None and a.alias_info.is_write]
        calls = [types.NamedArgument(a.name, tensor(a.name)) for a in tensors]
        flag = IN_PLACE.get(f"{namespace}.{name}")
        calls += [types.NamedArgument(flag, types.Argument.create(as_bool=True))] if flag else []
        node = types.Node(f"torch.ops.{namespace}.{name}.{overload}", calls, [tensor("result")], {})
        full_name = f"{operator.name}.{operator.overload_name}".removesuffix(".")
        if not torch._C._dispatch_has_kernel(full_name):
            continue
        if changed and not {a.name for a in changed} <= set(_changed(Call(node))):
            unknown.append(f"{node.target} changes {[a.name for a in changed]}")
        if outputs and len(_sharing(Call(node))) < 2:
            unknown.append(f"{node.target} views")
    assert not unknown, "\n".join(unknown)


@pytest.mark.parametrize("unused", [False, True])
def test_cost_per_node_does_not_grow(unused: bool) -> None:
    def seconds(size: int) -> float:
        tree = synthetic_program(size, random.Random(1), unused=unused)
        start = time.process_time()
        pt2wire.canonicalize(tree)
        return time.process_time() - start

    seconds(100)
    assert seconds(10_000) < 30 * seconds(1_000) + 0.1  # ten times as much, and a log


@pytest.mark.wide
def test_a_hundred_thousand_nodes_are_no_problem() -> None:
    tree = synthetic_program(100_000, random.Random(1))
    start = time.process_time()
    pt2wire.canonicalize(tree)
    assert time.process_time() - start < 60


def test_unsound_trees_are_refused() -> None:
    with pytest.raises(
        DeserializeError, match=r"nodes\[0\]: expected a value that is defined before, found 'z'"
    ):
        pt2wire.canonicalize(program_of(("aten.relu.default", ["z"], "r"), outputs=["r"]))
    with pytest.raises(
        DeserializeError, match=r"nodes\[0\]: expected a name that is defined once, found 'x' again"
    ):
        pt2wire.canonicalize(program_of(("aten.relu.default", ["x"], "x"), outputs=["x"]))
    tree = program_of(outputs=["x"])
    del tree.graph_module.signature.output_specs[0]
    with pytest.raises(DeserializeError, match="one argument for each of 0 specs"):
        pt2wire.canonicalize(tree)
    tree = program_of(outputs=["x"])
    tree.torch_version = 3  # type: ignore[assignment]
    with pytest.raises(SerializeError, match="torch_version"):
        pt2wire.canonicalize(tree)
    with pytest.raises(TypeError, match="expected a tree, an ExportedProgram of pt2wire"):
        pt2wire.canonicalize("model.pt2")  # type: ignore[arg-type]
