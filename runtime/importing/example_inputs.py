"""Example inputs from the records that hold them, or rebuilt; mirror of `exporting.example_inputs`.

PyTorch uses a program's example inputs to name the paths of its guards: without any, `module()` checks no
guard and says nothing, so that a program may accept sizes that it computes wrongly. So a program with guards
is never loaded without: what cannot be opened safely is replaced by stand-ins, of the structure and sizes
that the program itself describes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch._export.non_strict_utils import _enable_graph_inputs_of_type_nn_module
from torch.utils import _pytree as pytree

from ..called_with import passed_inputs
from ..errors import DeserializeError, UnsafeArtifactError
from ..generated.types import Argument, ExportedProgram, Graph, InputSpec, Layout, SymInt, TensorMeta
from ..permissions import ALLOW_PICKLE, NO_PERMISSIONS, Permissions
from ..sparse import indices_are_shared, is_sparse, put_together
from ..warning import warn_user
from .devices import Devices
from .exact import import_enum_input
from .faults import each, within
from .pickles import open_pickle, tensor_problem
from .treespecs import import_treespec
from .values import import_dtype, import_layout

ExampleInputs = tuple[tuple[Any, ...], dict[str, Any]]

#: For a size that was never known. Any would do: guards look at the structure of example inputs only.
_UNKNOWN_SIZE = 2


def import_example_inputs(
    tree: ExportedProgram,
    sample: bytes | memoryview | None,
    flat: bytes | memoryview | None,
    path: str,
    devices: Devices | None = None,
    permissions: Permissions = NO_PERMISSIONS,
) -> ExampleInputs | None:
    """Example inputs of a program.

    Args:
        tree: The program, validated.
        sample: The pickle that PyTorch reads. Empty for a program that has none, None where it should be
            and is not.
        flat: The leaves alone, likewise.
        path: The program, in warnings.
        devices: Where the inputs are to be.
        permissions: What the caller permits: whether pickles may run code.

    Returns:
        Positional and keyword arguments, or stand-ins for them on the meta device, with a warning that says
        why, unless the program was saved without any. None if it was and has no guards that need them, or if
        stand-ins could not be built.

    Raises:
        DeserializeError: The program's description of its inputs is damaged.
    """
    opened = _opened(sample, devices, permissions) if sample and not flat else None
    with modules_among(opened):
        return _fitting(tree, opened, sample, flat, path, devices, permissions)


def modules_among(inputs: object) -> AbstractContextManager[None]:
    """While it is open, modules among example inputs are nodes to pytree, as when PyTorch exports."""
    found: Any = (tuple(_modules(inputs)), {}) if _is_call(inputs) else None
    return _enable_graph_inputs_of_type_nn_module(found)


def _modules(inputs: object) -> list[torch.nn.Module]:
    """The modules among example inputs. Each container is entered once: a pickle may hold a small graph of
    lists whose tree has no end worth waiting for.
    """
    seen: dict[int, object] = {}  # by identity, and kept, so that no other object gets it
    pending, found = [inputs], []
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, torch.nn.Module):
            found.append(value)
        elif (node := pytree.SUPPORTED_NODES.get(pytree._get_node_type(value))) is not None:
            pending += node.flatten_fn(value)[0]
    return found


def _fitting(
    tree: ExportedProgram,
    opened: Any,
    sample: bytes | memoryview | None,
    flat: bytes | memoryview | None,
    path: str,
    devices: Devices | None,
    permissions: Permissions,
) -> ExampleInputs | None:
    spec = _in_spec(tree, permissions)
    reasons = []
    if flat:
        leaves = _opened(flat, devices, NO_PERMISSIONS)
        if _shares_indices(leaves):
            reasons.append(_SHARED)
        elif (
            isinstance(leaves, list)
            and len(leaves) == spec.num_leaves
            and _has_tensors(leaves, tree, NO_PERMISSIONS)
        ):
            return _unflatten(_as_described(leaves, tree, permissions), spec, path)
        else:
            reasons.append(f"of their leaves, {_why_not(leaves)}")
    if sample:
        inputs = _opened(sample, devices, permissions) if flat else opened
        if not _has_structure(inputs, spec) or not _has_tensors(
            pytree.tree_leaves(inputs), tree, permissions
        ):
            reasons.append(_why_not(inputs))
        elif _shares_indices(pytree.tree_leaves(inputs)):
            reasons.append(_SHARED)
        else:
            return inputs  # type: ignore[no-any-return]
    elif sample is None:
        reasons.append("the record that holds them is missing")
    elif not reasons and not tree.guards_code:
        return None
    if reasons:
        of_objects = ", and by None for objects, which run_decompositions() may refuse"
        warn_user(
            f"{path}: example inputs are replaced by stand-ins on the meta device"
            f"{of_objects if _takes_objects(tree) else ''}: {'; '.join(reasons)}"
        )
    return rebuild_example_inputs(tree, path, permissions)


def check_example_inputs(tree: ExportedProgram, inputs: object, permissions: Permissions) -> None:
    """Refuse what a caller gives as example inputs and cannot be the program's.

    Raises:
        DeserializeError: They hold more or fewer values than the program takes.
        TypeError: They are no tuple of positional arguments and dict of keyword arguments.
    """
    if not _is_call(inputs):
        raise TypeError(
            "expected example inputs as a tuple of positional and a dict of keyword arguments, such as "
            f"ep.example_inputs, found {type(inputs).__name__}"
        )
    with modules_among(inputs):
        expected, found = _in_spec(tree, permissions).num_leaves, len(pytree.tree_leaves(inputs))
    if found != expected:
        raise DeserializeError(
            f"expected example inputs of {expected} values, found {found}", path="example_inputs"
        )


def rebuild_example_inputs(
    tree: ExportedProgram, path: str = "program", permissions: Permissions = NO_PERMISSIONS
) -> ExampleInputs | None:
    """Stand-ins for a program's example inputs: meta tensors, and the numbers that it was traced with."""
    graph = tree.graph_module.graph
    specs = passed_inputs(tree.graph_module.signature)
    with within("graph_module.signature"):
        leaves = each("input_specs", specs, lambda spec: _stand_in(spec, graph, permissions))
    spec = _in_spec(tree, permissions)
    if len(leaves) != spec.num_leaves:
        raise DeserializeError(
            f"expected {spec.num_leaves} inputs as in the input structure, found {len(leaves)}",
            path="graph_module.signature.input_specs",
        )
    return _unflatten(leaves, spec, path)


def _takes_objects(tree: ExportedProgram) -> bool:
    specs = passed_inputs(tree.graph_module.signature)
    return any(spec.type == "user_input" and spec.user_input.arg.type == "as_custom_obj" for spec in specs)


def _in_spec(tree: ExportedProgram, permissions: Permissions) -> pytree.TreeSpec:
    """The structure of the program's positional and keyword arguments."""
    with within("graph_module.module_call_graph[0].signature.in_spec"):
        calls = tree.graph_module.module_call_graph
        signature = calls[0].signature if calls else None
        if signature is None or not (signature.in_spec or signature.exact_in_spec):
            raise DeserializeError("expected the structure of the program's inputs, found none")
        fields = tree.graph_module.treespec_namedtuple_fields
        return import_treespec(signature.in_spec, fields, permissions, signature.exact_in_spec)


def _opened(data: bytes | memoryview, devices: Devices | None, permissions: Permissions) -> Any:
    """What a pickle holds, or the error that says why it was not opened."""
    allow_pickle, known = permissions.allow_pickle, permissions.types
    try:
        return open_pickle(data, "", devices, allow_pickle=allow_pickle, known=known)
    except DeserializeError as error:
        return error


_SHARED = "indices of a sparse tensor share memory with numbers, which a program may change"


def _shares_indices(leaves: Any) -> bool:
    return isinstance(leaves, list) and indices_are_shared(
        leaf for leaf in leaves if isinstance(leaf, torch.Tensor)
    )


def _has_structure(inputs: Any, spec: pytree.TreeSpec) -> bool:
    """Whether these are positional and keyword arguments that nest as the program's do."""
    if not _is_call(inputs):
        return False
    try:
        return _fits(inputs, spec)
    except Exception:  # RecursionError among them
        return False


def _has_tensors(leaves: list[Any], tree: ExportedProgram, permissions: Permissions) -> bool:
    """Whether those of a program's inputs are tensors that it says are, of the dtypes that it says, and those
    sparse that it says are: what may be done with sparse tensors was judged by that."""
    specs = passed_inputs(tree.graph_module.signature)
    values = tree.graph_module.graph.tensor_values
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    if not permissions.allow_pickle and any(tensor_problem(leaf, permissions.types) for leaf in tensors):
        return False
    for leaf, spec in zip(leaves, specs, strict=False):
        if spec.type != "user_input" or spec.user_input.arg.type != "as_tensor":
            continue
        if not isinstance(leaf, torch.Tensor):
            return False
        meta = values[spec.user_input.arg.as_tensor.name]
        if is_sparse(leaf) and leaf.layout is not import_layout(meta.layout):
            return False
        # Tensors of a class of their own may be several inputs of the graph.
        if type(leaf) is torch.Tensor and len(leaves) == len(specs) and leaf.dtype not in _dtypes(meta):
            return False
    return True


def _dtypes(meta: TensorMeta) -> set[torch.dtype]:
    """Those that the leaf of an input may have: PyTorch's pickles hold bytes for some."""
    dtype = import_dtype(meta)
    return {dtype} if meta.extra_dtype is None else {dtype, torch.uint8}


def _is_call(inputs: object) -> bool:
    """Whether these are positional and keyword arguments."""
    return (
        isinstance(inputs, tuple)
        and len(inputs) == 2
        and isinstance(inputs[0], tuple)
        and isinstance(inputs[1], dict)
    )


def _fits(value: Any, spec: pytree.TreeSpec) -> bool:
    """Whether a value nests as a spec says. It is followed no further than that: what a pickle holds may be
    a small graph of lists whose tree has no end worth waiting for."""
    kind = pytree._get_node_type(value)
    if spec.is_leaf():
        return kind not in pytree.SUPPORTED_NODES
    # Exporting takes sizes for tuples.
    if kind is not spec.type and (kind, spec.type) != (torch.Size, tuple):
        return False
    children, context = pytree.SUPPORTED_NODES[kind].flatten_fn(value)
    return (
        context == spec.context
        and len(children) == spec.num_children
        and all(map(_fits, children, spec.children()))
    )


def _why_not(opened: Any) -> str:
    """Why what a pickle held, or the error that opening it raised, is no use."""
    if not isinstance(opened, DeserializeError):
        return "they do not fit the program"
    if isinstance(opened, UnsafeArtifactError):
        return f"they {opened.message}. {ALLOW_PICKLE}"
    return f"they are damaged: {opened.message}"


def _unflatten(leaves: list[Any], spec: pytree.TreeSpec, path: str) -> ExampleInputs | None:
    try:
        args, kwargs = pytree.tree_unflatten(leaves, spec)
    except Exception as error:  # of a registered class
        warn_user(
            f"{path}: the example inputs cannot be rebuilt ({type(error).__name__}: {error}), so that "
            "module() will not check guards"
        )
        return None
    return args, kwargs


def _as_described(leaves: list[Any], tree: ExportedProgram, permissions: Permissions) -> list[Any]:
    """The leaves, with the dtypes that the graph has for bytes, and with members of enums."""
    graph = tree.graph_module.graph
    specs = passed_inputs(tree.graph_module.signature)
    typed = list(leaves)
    for number, (leaf, spec) in enumerate(zip(leaves, specs, strict=False)):
        if spec.type == "constant_input" and spec.constant_input.exact_value is not None:
            typed[number] = _stand_in(spec, graph, permissions)
        if isinstance(leaf, torch.Tensor) and spec.type == "user_input":
            argument = spec.user_input.arg
            meta = graph.tensor_values.get(argument.as_tensor.name) if argument.type == "as_tensor" else None
            if meta is not None and meta.extra_dtype is not None and leaf.dtype is torch.uint8:
                typed[number] = leaf.view(import_dtype(meta))
    return typed


def _stand_in(spec: InputSpec, graph: Graph, permissions: Permissions) -> Any:
    if spec.type == "constant_input":
        if spec.constant_input.exact_value is not None:
            return import_enum_input(spec.constant_input.exact_value, permissions.types)
        value = spec.constant_input.value
        return None if value.type == "as_none" else value.value
    argument = spec.user_input.arg
    make = _STAND_INS.get(argument.type)
    return None if make is None else make(argument, graph)


def _tensor(argument: Argument, graph: Graph) -> torch.Tensor:
    return _empty(graph.tensor_values[argument.as_tensor.name])


def _empty(meta: TensorMeta) -> torch.Tensor:
    if meta.layout is not Layout.Strided:
        parts = {name: _empty(part) for name, part in (meta.inner or {}).items()}
        sizes = [_number(size) for size in meta.sizes]
        layout = import_layout(meta.layout)
        if not parts:  # of PyTorch's writer, which keeps no more
            return torch.empty(sizes, dtype=import_dtype(meta), layout=layout, device="meta")
        return put_together(layout, parts, sizes, meta.coalesced is not False)
    return torch.empty_strided(
        [_number(size) for size in meta.sizes],
        [_number(stride) for stride in meta.strides],
        dtype=import_dtype(meta),
        device="meta",
    )


def _sym_int(argument: Argument, graph: Graph) -> int:
    value = argument.as_sym_int
    return value.as_int if value.type == "as_int" else _number(graph.sym_int_values[value.as_name])


def _sym_float(argument: Argument, graph: Graph) -> float:
    value = argument.as_sym_float
    if value.type == "as_float":
        return value.as_float
    symbol = graph.sym_float_values[value.as_name]
    if symbol.type == "as_float":
        return symbol.as_float
    hint = symbol.as_expr.hint
    return hint.as_float if hint is not None and hint.type == "as_float" else float(_UNKNOWN_SIZE)


def _sym_bool(argument: Argument, graph: Graph) -> bool:
    value = argument.as_sym_bool
    return value.as_bool if value.type == "as_bool" else True


def _number(value: SymInt) -> int:
    if value.type == "as_int":
        return value.as_int
    hint = value.as_expr.hint
    return hint.as_int if hint is not None and hint.type == "as_int" else _UNKNOWN_SIZE


# The kinds of arguments that a caller passes; None stands for all others.
_STAND_INS: dict[str, Callable[[Argument, Graph], Any]] = {
    "as_tensor": _tensor,
    "as_sym_int": _sym_int,
    "as_sym_float": _sym_float,
    "as_sym_bool": _sym_bool,
    "as_int": lambda argument, graph: argument.as_int,
    "as_float": lambda argument, graph: argument.as_float,
    "as_bool": lambda argument, graph: argument.as_bool,
    "as_string": lambda argument, graph: argument.as_string,
}
