"""Other spellings of a program: new names, another order, other notes. Works on JSON, not with pt2wire.

In-place operators stay where they are among all nodes, and operators that draw random numbers among one
another, so that what comes out surely is the same program.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

import pt2wire
import torch
from pt2wire.generated import json_codec
from pt2wire.generated.types import ExportedProgram

Json = Any

_VALUES = ("tensor_values", "sym_int_values", "sym_bool_values", "sym_float_values", "custom_obj_values")
_TABLES = (
    *_VALUES,
    "opset_version",
    "range_constraints",
    "treespec_namedtuple_fields",
    "as_string_to_argument",
)
_BOUND = ("parameter", "buffer", "tensor_constant", "custom_obj")


def scrambled(tree: ExportedProgram, random: Random) -> ExportedProgram:
    """The same program, spelled in another way."""
    data = json.loads(json_codec.encode(tree))  # also of what PyTorch's format cannot express
    module = data["graph_module"]
    graph, signature = module["graph"], module["signature"]
    names = _scramble_graph(graph, random)
    _rename([signature, module["module_call_graph"]], names)
    for spec in signature["output_specs"]:
        for value in spec.values():
            if "user_input_name" in value:
                value["user_input_name"] = names[value["user_input_name"]]
    _shuffle_bound_inputs(graph, signature, random)
    for number, spec in enumerate(signature["input_specs"]):
        if "constant_input" in spec:
            spec["constant_input"]["name"] = f"constant_{number}_{random.randrange(1000)}"
    random.shuffle(module["module_call_graph"])
    random.shuffle(data["guards_code"])
    module["metadata"] = {"custom": "{}"}
    data["writer"] = {"name": "somebody", "version": "1", "revision": 1}
    if "beyond" in data:
        data["beyond"] = ["words of somebody"]
    return pt2wire.from_json(json.dumps(_with_shuffled_tables(data, random)))


def graphs_of(graph: Json) -> Iterator[Json]:
    """A graph and all its subgraphs."""
    yield graph
    for node in graph["nodes"]:
        for argument in _subgraphs(node["inputs"]):
            yield from graphs_of(argument["graph"])


def _subgraphs(part: Json) -> Iterator[Json]:
    """The subgraph arguments in a part of a graph, those inside of them left out."""
    if isinstance(part, dict):
        if "as_graph" in part:
            yield part["as_graph"]
        else:
            yield from _subgraphs(list(part.values()))
    elif isinstance(part, list):
        for item in part:
            yield from _subgraphs(item)


def _holders(part: Json) -> Iterator[tuple[Json, str]]:
    """Each place that names a value: the object and the key. Subgraphs have names of their own."""
    if isinstance(part, list):
        for item in part:
            yield from _holders(item)
    elif isinstance(part, dict):
        if set(part) in ({"name"}, {"name", "class_fqn"}):
            yield part, "name"
        elif set(part) == {"as_name"}:
            yield part, "as_name"
        elif "as_graph" not in part:
            yield from _holders([value for key, value in part.items() if key != "metadata"])


def names_in(part: Json) -> list[str]:
    """The names of values in a part of a program."""
    return [holder[key] for holder, key in _holders(part)]


def _rename(part: Json, names: dict[str, str]) -> None:
    for holder, key in _holders(part):
        holder[key] = names.get(holder[key], holder[key])


def _scramble_graph(graph: Json, random: Random) -> dict[str, str]:
    items = graph.get("getitems") or []
    owners = {item["of"]: item["of"] for item in items}
    for node in graph["nodes"]:
        for argument in _subgraphs(node["inputs"]):
            _scramble_graph(argument["graph"], random)
            argument["name"] = f"graph_{random.randrange(10**6)}"
        node["metadata"] = {"stack_trace": f"line {random.randrange(100)}"}
        new = f"node_{random.randrange(10**6)}"
        new_or_none = random.choice([None, new])
        if node["name"] in owners:
            owners[node["name"]] = node["name"] = new
        else:
            node["name"] = new_or_none
    graph["nodes"] = _another_order(graph["nodes"], random)
    held = graph.get("constants") or []
    random.shuffle(held)
    old = dict.fromkeys(names_in([graph["inputs"], [node["outputs"] for node in graph["nodes"]]]))
    old |= dict.fromkeys(constant["name"] for constant in held)
    old |= dict.fromkeys(item["name"] for item in items)
    numbers = random.sample(range(10 * len(old) + 1), len(old))
    # Also names such as those of the canonical form.
    names = {
        name: f"{random.choice(['_', 'v', 'relu_'])}{number}"
        for name, number in zip(old, numbers, strict=True)
    }
    parts = ("inputs", "outputs", "exact_output", "nodes", "custom_obj_values")
    _rename([graph.get(part) for part in parts], names)
    for constant in held:
        constant["name"] = constant["target"] = names[constant["name"]]
    for item in items:
        item["of"] = names.get(item["of"]) or owners[item["of"]]
        item["name"] = names[item["name"]]
    for table in _VALUES:
        graph[table] = {names[name]: value for name, value in graph[table].items()}
    return names


def _another_order(nodes: list[Json], random: Random) -> list[Json]:
    makers = {name: index for index, node in enumerate(nodes) for name in names_in(node["outputs"])}
    needed: list[set[int]] = []
    fence = draw = -1
    for index, node in enumerate(nodes):
        before = {makers[name] for name in names_in(node["inputs"]) if name in makers}
        if fence >= 0:
            before.add(fence)
        if _is_fence(node):
            before |= set(range(index))
            fence = index
        if _draws(node):
            before |= {draw} - {-1}
            draw = index
        needed.append(before)
    order: list[int] = []
    left = set(range(len(nodes)))
    while left:
        ready = sorted(index for index in left if needed[index].isdisjoint(left))
        chosen = random.choice(ready)
        left.remove(chosen)
        order.append(chosen)
    return [nodes[index] for index in order]


def _draws(node: Json) -> bool:
    """Whether PyTorch says that an operator draws random numbers; some do so in training alone."""
    inner = [each for argument in _subgraphs(node["inputs"]) for each in argument["graph"]["nodes"]]
    return any(map(_draws, inner)) or node["target"] in _drawing()


@cache
def _drawing() -> frozenset[str]:
    targets = set()
    for full_name in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = full_name.partition("::")
        name, _, overload = rest.partition(".")
        if namespace in ("aten", "prims"):
            operator = getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")
            if torch.Tag.nondeterministic_seeded in operator.tags:
                targets.add(f"torch.ops.{namespace}.{name}.{overload or 'default'}")
    return frozenset(targets)


def _is_fence(node: Json) -> bool:
    target = node["target"]
    if target.startswith(("torch._functorch", "torch.amp", "#", "torch.ops.higher_order.print")):
        return True
    if any("as_custom_obj" in named["arg"] for named in node["inputs"]):
        return True
    if any(
        _is_fence(inner) for argument in _subgraphs(node["inputs"]) for inner in argument["graph"]["nodes"]
    ):
        return True
    name = target.removeprefix("torch.ops.").split(".")[1]
    training = any(
        named["name"] == "training" and named["arg"] == {"as_bool": True} for named in node["inputs"]
    )
    return name.endswith("_") or ("batch_norm" in name and training)


def _shuffle_bound_inputs(graph: Json, signature: Json, random: Random) -> None:
    """Weights may come in any order, before the inputs that are bound by position."""
    pairs = list(zip(graph["inputs"], signature["input_specs"], strict=True))
    bound = [pair for pair in pairs if next(iter(pair[1])) in _BOUND]
    others = [pair for pair in pairs if next(iter(pair[1])) not in _BOUND]
    random.shuffle(bound)
    graph["inputs"] = [argument for argument, _ in (*bound, *others)]
    signature["input_specs"] = [spec for _, spec in (*bound, *others)]


def _with_shuffled_tables(part: Json, random: Random) -> Json:
    if isinstance(part, list):
        return [_with_shuffled_tables(item, random) for item in part]
    if not isinstance(part, dict):
        return part
    shuffled = {}
    for key, value in part.items():
        if key in _TABLES:
            items = list(value.items())
            random.shuffle(items)
            value = dict(items)
        shuffled[key] = _with_shuffled_tables(value, random)
    return shuffled
