"""Lies in the fields of our own about tensors: of classes of their own, and those that graphs hold."""

from __future__ import annotations

import copy
from typing import Any

from pt2wire.generated import types

from .lies import GRAPH, NODE, Tree, Value, lie, node_of, sign


@lie("tensor-meta", f"{GRAPH}.tensor_values['sin'].conj", "expected a complex dtype, found FLOAT")
def conjugated_float(tree: Tree) -> None:
    sign(tree)
    tree.graph_module.graph.tensor_values["sin"].conj = True


def _subclass(tree: Tree, name: str, context: Value | None = None, part: str = "whole") -> None:
    """A value of a class of its own, made of one other tensor."""
    sign(tree)
    values = tree.graph_module.graph.tensor_values
    meta = values["sin"]
    meta.inner = {part: copy.deepcopy(meta)}
    meta.subclass, meta.context = name, context


_SIN = f"{GRAPH}.tensor_values['sin']"


@lie("tensor-meta", f"{_SIN}.subclass", "expected MODULE:QUALIFIED_NAME, found 'os.system()'")
def tensor_of_a_class_that_is_a_call(tree: Tree) -> None:
    _subclass(tree, "os.system()")


@lie("tensor-meta", f"{_SIN}.context", "expected a constant, found as_tensor")
def tensor_of_a_class_with_a_tensor_as_constant(tree: Tree) -> None:
    _subclass(tree, "vendor:Quantized", Value.of_tensor(types.TensorArgument("x")))


@lie("tensor-meta", f"{_SIN}.inner['a b']", "expected an identifier, found 'a b': not an identifier")
def tensor_of_a_class_with_a_part_that_is_no_name(tree: Tree) -> None:
    _subclass(tree, "vendor:Quantized", part="a b")


@lie("tensor-meta", f"{_SIN}.inner['whole'].dtype", "expected a dtype, found UNKNOWN")
def tensor_of_a_class_with_a_part_without_a_dtype(tree: Tree) -> None:
    _subclass(tree, "vendor:Quantized")
    inner = tree.graph_module.graph.tensor_values["sin"].inner
    assert inner is not None
    inner["whole"].dtype = types.ScalarType.UNKNOWN


@lie("tensor-meta", f"{_SIN}.inner", "expected the tensors that a tensor is made of, found none")
def tensor_of_a_class_made_of_nothing(tree: Tree) -> None:
    sign(tree)
    tree.graph_module.graph.tensor_values["sin"].subclass = "vendor:Quantized"


@lie("tensor-meta", f"{_SIN}.context", "expected none for a tensor of PyTorch's own class, found one")
def plain_tensor_with_the_constants_of_a_class(tree: Tree) -> None:
    sign(tree)
    tree.graph_module.graph.tensor_values["sin"].context = Value.of_int(1)


BRANCH = f"{NODE}.inputs[1].arg.as_graph.graph"
_WEIGHT = "graph_module.signature.input_specs[0].parameter"


def _held(tree: Tree, **changes: Any) -> types.Graph:
    """A tensor that the branch of `cond` holds, honest but for the changes of it."""
    sign(tree)
    tree.beyond = ["tensors that subgraphs hold"]
    graph = node_of(tree, "cond").inputs[1].arg.as_graph.graph
    meta = types.TensorMeta(
        dtype=types.ScalarType.INT,
        sizes=[types.SymInt.of_int(2)],
        requires_grad=False,
        device=types.Device(type="cpu"),
        strides=[types.SymInt.of_int(1)],
        storage_offset=types.SymInt.of_int(0),
        layout=types.Layout.Strided,
    )
    constant = types.GraphConstant("made", "made", bytes(8))
    for field, value in changes.items():
        setattr(meta if hasattr(meta, field) and field != "requires_grad" else constant, field, value)
    graph.tensor_values["made"] = meta
    graph.constants = [constant]
    return graph


@lie(
    "held-tensor",
    f"{GRAPH}.constants",
    "expected the tensors of a program as its inputs, found some in its graph",
)
def tensors_in_the_top_graph(tree: Tree) -> None:
    sign(tree)
    tree.beyond = ["tensors that subgraphs hold"]
    tree.graph_module.graph.constants = []


@lie(
    "exact",
    f"{BRANCH}.constants",
    "expected a program that says what PyTorch cannot express of it, found none",
)
def held_tensor_that_pytorch_lacks(tree: Tree) -> None:
    _held(tree)
    tree.beyond = None


@lie(
    "fqn-clash",
    f"{_WEIGHT}.parameter_name",
    "expected another name than 'true_graph_0.made', which a subgraph holds, in 'true_graph_0.made'",
)
def weight_in_the_place_of_a_held_tensor(tree: Tree) -> None:
    _held(tree)
    tree.graph_module.signature.input_specs[0].parameter.parameter_name = "true_graph_0.made"


@lie("held-tensor", f"{BRANCH}.constants[0].data", "expected 8 bytes, found 7")
def held_tensor_of_too_few_bytes(tree: Tree) -> None:
    _held(tree, data=bytes(7))


@lie("held-tensor", f"{BRANCH}.constants[0].data", "expected 8 bytes, found 9")
def held_tensor_of_too_many_bytes(tree: Tree) -> None:
    _held(tree, data=bytes(9))


@lie("held-tensor", f"{BRANCH}.constants[0]", "expected integers as sizes, found a symbolic expression")
def held_tensor_of_unknown_size(tree: Tree) -> None:
    size = tree.graph_module.graph.tensor_values["x"].sizes[0]
    _held(tree, sizes=[size])


@lie(
    "held-tensor",
    f"{BRANCH}.constants[0]",
    "expected the numbers themselves, found a conjugation or negation of them",
)
def held_tensor_negated(tree: Tree) -> None:
    _held(tree, neg=True)


@lie(
    "held-tensor",
    f"{BRANCH}.constants[0]",
    "expected a device cpu without an index, found 99",
)
def held_tensor_on_a_device_with_an_index(tree: Tree) -> None:
    _held(tree, device=types.Device("cpu", 99))


@lie(
    "held-tensor",
    f"{BRANCH}.constants[0].requires_grad",
    "expected a dtype with gradients, or requires_grad false, found INT",
)
def held_integers_with_a_gradient(tree: Tree) -> None:
    _held(tree, requires_grad=True)


@lie(
    "name",
    f"{BRANCH}.constants[0].target",
    "expected an identifier, found 'x=__import__(\"os\")': not an identifier",
)
def held_tensor_whose_attribute_is_code(tree: Tree) -> None:
    _held(tree, target='x=__import__("os")')


@lie("missing-value", f"{BRANCH}.constants[0]", "expected 'made' in tensor_values, found nothing")
def held_tensor_without_a_description(tree: Tree) -> None:
    del _held(tree).tensor_values["made"]


@lie("duplicate-name", f"{BRANCH}.constants[1]", "expected a name that is defined once, found 'made' again")
def held_tensor_twice(tree: Tree) -> None:
    graph = _held(tree)
    graph.constants *= 2


@lie("held-tensor", f"{BRANCH}.constants[1]", "expected one tensor named 'made', found two that differ")
def held_tensors_in_one_place(tree: Tree) -> None:
    graph = _held(tree)
    graph.tensor_values["other"] = graph.tensor_values["made"]
    graph.constants.append(types.GraphConstant("other", "made", b"\1" * 8))


@lie("held-tensor", f"{BRANCH}.constants[1]", "expected one tensor named 'made', found two that differ")
def held_tensors_of_two_dtypes_in_one_place(tree: Tree) -> None:
    graph = _held(tree)
    graph.tensor_values["other"] = copy.copy(graph.tensor_values["made"])
    graph.tensor_values["other"].dtype = types.ScalarType.FLOAT
    graph.constants.append(types.GraphConstant("other", "made", bytes(8)))
