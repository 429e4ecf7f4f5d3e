"""Comparing two exported programs, as strictly as they can be compared."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import sympy
import torch
from torch import Tensor
from torch._library.fake_class_registry import FakeScriptObject
from torch._subclasses import FakeTensor
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

# What the format stores of a node's metadata. Everything else in `meta` is scratch space of the exporter.
_STORED_METADATA = ("stack_trace", "nn_module_stack", "torch_fn", "source_fn_stack", "custom")

Description = dict[str, str]


class Difference(NamedTuple):
    """One place where two programs differ; the values are texts, so that differences can be compared."""

    path: str
    expected: str
    found: str

    def __str__(self) -> str:
        pairs = enumerate(zip(self.expected, self.found, strict=False))
        start = next((at for at, (one, other) in pairs if one != other), 0)
        expected, found = (_around(text, start) for text in (self.expected, self.found))
        return f"{self.path}: expected {expected}, found {found}"


def _around(text: str, start: int) -> str:
    """The part of a text where the difference is: descriptions of whole graphs are long."""
    before, after = max(0, start - 80), start + 120
    return "..." * (before > 0) + text[before:after] + "..." * (after < len(text))


def assert_same_program(expected: ExportedProgram, found: ExportedProgram) -> None:
    """Fails, with every difference, unless `found` is the same program as `expected`."""
    assert_no_differences(differences(describe_program(expected), describe_program(found)))


def assert_no_differences(found: list[Difference]) -> None:
    """Fails with the first twenty."""
    # Not a bare assert, which would print everything once more.
    if found:
        raise AssertionError(f"{len(found)} differences\n" + "\n".join(map(str, found[:20])))


def differences(expected: Description, found: Description) -> list[Difference]:
    """Where two descriptions differ."""
    paths = expected.keys() | found.keys()
    pairs = ((path, expected.get(path, "nothing"), found.get(path, "nothing")) for path in sorted(paths))
    return [Difference(*pair) for pair in pairs if pair[1] != pair[2]]


def describe_program(ep: ExportedProgram) -> Description:
    """Everything that makes a program what it is, by path; two programs are the same if the texts are equal.

    Described are graphs (text, node order, names, targets, arguments by type), metadata (values with symbols
    and their assumptions, strides, dtypes, devices, hints; stack traces, modules, notes), signature, ranges,
    guards, module call graph, tree specs, example inputs, and weights: bits, strides, offsets, sharing.
    """
    description = dict(_graph_module("graph", ep.graph_module))
    for path in ("graph_signature", "module_call_graph", "call_spec", "dialect"):
        description[path] = _describe(getattr(ep, path))
    # PyTorch's format has no empty list of argument names.
    description["module_call_graph"] = description["module_call_graph"].replace("names=[]", "names=None")
    description["ranges"] = str(sorted((sympy.srepr(s), str(r)) for s, r in ep.range_constraints.items()))
    description["guards"] = str([ast.unparse(ast.parse(guard, mode="eval")) for guard in ep._guards_code])
    description.update(_weights(ep))
    description.update(describe_value("example_inputs", ep.example_inputs))
    return description


def describe_value(path: str, value: Any) -> Description:
    """A nested value, by path; tensors bit for bit, with dtype, shape, strides and device."""
    leaves, spec = pytree.tree_flatten(value)
    description = {f"{path} structure": str(spec)}
    for number, leaf in enumerate(leaves):
        description[f"{path}[{number}]"] = _describe_with_bits(leaf)
    return description


def _graph_module(path: str, module: GraphModule) -> Iterator[tuple[str, str]]:
    # Brackets of both kinds look the same here, because containers are compared argument by argument.
    yield f"{path} text", str(module.graph).translate(str.maketrans("()", "[]")).replace(",]", "]")
    yield f"{path} nodes", _names(module.graph.nodes)
    if module.meta.get("custom"):
        yield f"{path} note", _describe(module.meta["custom"])
    for node in module.graph.nodes:
        yield from _node(f"{path}.{node.name}", node)
    # By name: PyTorch attaches submodules while it reads nodes, exporters as they trace.
    children = sorted(module.named_children())
    yield f"{path} submodules", ", ".join(f"{name}: {_kind(child)}" for name, child in children)
    for name, child in children:
        if isinstance(child, GraphModule):
            yield from _graph_module(f"{path}.{name}", child)


def _kind(module: torch.nn.Module) -> str:
    # Each traced GraphModule has a class of its own, named by chance.
    return "GraphModule" if isinstance(module, GraphModule) else type(module).__name__


def _node(path: str, node: Node) -> Iterator[tuple[str, str]]:
    yield f"{path} op", f"{node.op} {_describe(node.target)} {node.type}"
    for part, arguments in (("args", node.args), ("kwargs", node.kwargs)):
        yield f"{path} {part}", _describe(arguments).replace("tuple(", "list(")
        yield f"{path} {part} containers", _describe(arguments)
    if node.op == "get_attr" and isinstance(held := getattr(node.graph.owning_module, node.target), Tensor):
        yield f"{path} bits", f"{type(held).__name__} {_describe_with_bits(held)}"
    if node.op == "get_attr" and isinstance(
        spec := getattr(node.graph.owning_module, node.target), pytree.TreeSpec
    ):
        yield f"{path} spec", _describe(spec)
    # By name: the order of users is that in which some pass made them, and means nothing.
    yield f"{path} users", _names(sorted(node.users, key=lambda user: user.name))
    for key in _STORED_METADATA:
        # An empty note is no note: exporters leave some behind, no format stores them.
        if node.meta.get(key):
            yield f"{path} {node.op} meta {key}", _describe(node.meta[key])
    # PyTorch gives the output node a value when it reads a file; exporters do not.
    if node.op != "output":
        leaves, spec = pytree.tree_flatten(node.meta.get("val"))
        yield f"{path} value", _describe(leaves)
        strided = [leaf for leaf in leaves if isinstance(leaf, Tensor) and leaf.layout is torch.strided]
        yield f"{path} value offsets", str([tensor.storage_offset() for tensor in strided])
        yield f"{path} value container", str(spec)
        yield f"{path} unbacked", _describe(node.meta.get("unbacked_bindings") or {})


def _names(nodes: Iterable[Node]) -> str:
    return ", ".join(node.name for node in nodes)


def _weights(ep: ExportedProgram) -> Iterator[tuple[str, str]]:
    weights: dict[str, Any] = {f"state_dict {name}": value for name, value in ep.state_dict.items()}
    weights |= {f"constants {name}": value for name, value in ep.constants.items()}
    for name, value in weights.items():
        yield f"weights {name}", _describe_with_bits(value)
    for name, value in list(weights.items()):
        if isinstance(value, Tensor):
            weights |= {f"{name}.{part}": tensor for part, tensor in _parts(value).items()}
    yield "weights order of state_dict", ", ".join(ep.state_dict)
    yield "weights in one storage", _groups(weights, lambda tensor: tensor.untyped_storage().data_ptr())
    yield "weights that are one object", _groups(weights, id)


def _groups(weights: dict[str, Any], key: Callable[[Tensor], int]) -> str:
    """The names of the tensors that have one key, for keys of several tensors."""
    groups: dict[int, list[str]] = {}
    for name, tensor in weights.items():
        if isinstance(tensor, Tensor) and tensor.numel() and not _parts(tensor):
            groups.setdefault(key(tensor), []).append(name)
    return str(sorted(sorted(names) for names in groups.values() if len(names) > 1))


def _describe_with_bits(value: Any) -> str:
    if not isinstance(value, Tensor) or isinstance(value, FakeTensor) or value.is_meta:
        return _describe(value)
    if parts := _parts(value):
        return (
            f"{_describe(value)} of {_describe({n: _describe_with_bits(part) for n, part in parts.items()})}"
        )
    # As bytes: NaN equals itself, and -0.0 is not 0.0.
    plain = value.detach().as_subclass(Tensor).resolve_conj().resolve_neg()
    if plain.element_size() == 1:  # torch cannot copy all of their dtypes
        plain = plain.view(torch.uint8)
    plain = plain.clone(memory_format=torch.contiguous_format)
    digest = hashlib.sha256(plain.reshape(-1).view(torch.uint8).numpy()).hexdigest()[:16]
    return f"{_describe(value)} offset {value.storage_offset()} bits {digest} {_first_elements(plain)}"


def _first_elements(tensor: Tensor) -> list[Any]:
    first = tensor.reshape(-1)[:4]
    try:
        return first.tolist()
    except (RuntimeError, NotImplementedError):  # of a dtype without numbers, or without arithmetic
        return first.view(torch.uint8).tolist()


def _parts(tensor: Tensor) -> dict[str, Tensor]:
    """The tensors that a sparse one, or one of a subclass, is made of."""
    if is_traceable_wrapper_subclass(tensor):
        return {name: getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]}
    if tensor.layout is torch.sparse_coo:
        return {"indices": tensor._indices(), "values": tensor._values()}
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        indices = {"crow_indices": tensor.crow_indices(), "col_indices": tensor.col_indices()}
        return {**indices, "values": tensor.values()}
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        indices = {"ccol_indices": tensor.ccol_indices(), "row_indices": tensor.row_indices()}
        return {**indices, "values": tensor.values()}
    return {}


def _describe(value: Any) -> str:
    """A text that is equal for equal values only: types of containers and numbers count, NaN equals NaN."""
    for kinds, describe in _DESCRIPTIONS:
        if isinstance(value, kinds):
            return describe(value)
    return _ADDRESS.sub("", f"{type(value).__name__}({value})")


def _describe_tensor(tensor: Tensor) -> str:
    size, stride = _describe(list(tensor.shape)), "none"
    if tensor.layout is torch.strided:
        stride = _describe(list(tensor.stride()))
    grad = " requires_grad" if tensor.requires_grad else ""
    grad += " conj" * tensor.is_conj() + " neg" * tensor.is_neg()
    if parts := _parts(tensor):
        grad += f" of {[f'{name} {part.dtype} {tuple(part.shape)}' for name, part in parts.items()]}"
        if is_traceable_wrapper_subclass(tensor):
            grad += f" and {_describe(tensor.__tensor_flatten__()[1])}"
        grad += " coalesced" * (tensor.layout is torch.sparse_coo and tensor.is_coalesced())
    # functorch wraps fake tensors in levels that exist only while it runs.
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    name = FakeTensor.__name__ if wrapped else type(tensor).__name__
    kind = f"{name} {tensor.dtype} {tensor.device} {tensor.layout}"
    return f"{kind} size {size} stride {stride}{grad}"


def _describe_symbolic(value: torch.SymInt | torch.SymFloat | torch.SymBool) -> str:
    # srepr shows the assumptions of symbols, on which sympy's simplifications depend.
    return f"{type(value).__name__}({sympy.srepr(value.node.expr)}, hint {value.node._hint})"


def _describe_dict(value: dict[Any, Any]) -> str:
    items = ", ".join(f"{_describe(key)}: {_describe(item)}" for key, item in value.items())
    return f"{_container(value)}{{{items}}}"


def _describe_sequence(value: Any) -> str:
    return f"{_container(value)}({', '.join(map(_describe, value))})"


def _container(value: Any) -> str:
    # FX keeps arguments in immutable containers of its own.
    return type(value).__name__.removeprefix("immutable_")


_DESCRIPTIONS: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (Tensor, _describe_tensor),
    ((torch.SymInt, torch.SymFloat, torch.SymBool), _describe_symbolic),
    (Node, lambda node: f"%{node.name}"),
    (sympy.Basic, sympy.srepr),
    (pytree.TreeSpec, lambda spec: " ".join(str(spec).split())),
    (type, lambda kind: f"{kind.__module__}.{kind.__qualname__}"),
    (dict, _describe_dict),
    ((list, tuple, set, frozenset), _describe_sequence),
    ((str, float, complex, int, bytes, type(None)), lambda value: f"{type(value).__name__} {value!r}"),
    (torch._ops.OpOverload, str),
    (torch.ScriptObject, lambda value: f"{value._type().qualified_name()} {_describe(value.__getstate__())}"),
    (FakeScriptObject, lambda value: f"fake of {_describe(value.real_obj)}"),
)
_ADDRESS = re.compile(" at 0x[0-9a-f]+")
