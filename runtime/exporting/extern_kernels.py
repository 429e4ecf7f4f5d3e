"""Calls that a library compiled by AOTInductor hands back to PyTorch's dispatcher: Inductor's fallbacks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch._export.serde.serialize import EnumEncoder, _dataclass_to_dict
from torch._higher_order_ops.torchbind import CallTorchBind
from torch.fx import Graph, Node
from torch.utils import _pytree as pytree

from ..arguments import check_list, described
from ..errors import SerializeError
from ..extensions import schema_of
from ..generated import json_codec, types
from ..trees import decode
from .faults import located
from .nodes import export_inputs
from .values import Program, Values


def export_extern_kernels(kernels: Iterable[Any]) -> types.ExternKernelNodes:
    """Write fallback kernels of Inductor as the document that is packaged beside a compiled library.

    Inductor knows what its buffers and sizes are called only while it compiles: call it there.

    Args:
        kernels: Those kernels (`torch._inductor.ir.FallbackKernel`), in the order in which the library
            numbers them; or what Inductor says of them itself (`torch._inductor.ir.ExternKernelNode`), which
            it hands to its `extern_node_serializer`.

    Returns:
        What PyTorch writes of the same kernels, as data; `to_json` and `to_thrift` write it.

    Raises:
        TypeError: `kernels` lists something else.
        SerializeError: A kernel calls what has no schema, or with what the format cannot hold; the path is
            the kernel's name.

    Example:
        >>> from torch._export.serde import schema
        >>> from torch._inductor.ir import ExternKernelNode
        >>> call = schema.Node(target="aten::relu", inputs=[], outputs=[], metadata={})
        >>> export_extern_kernels([ExternKernelNode(name="buf0", node=call)]).nodes[0].node.target
        'aten::relu'
    """
    listed = check_list(kernels, "kernels", "fallback kernels")
    return types.ExternKernelNodes(nodes=[_export_kernel(kernel) for kernel in listed])


def _export_kernel(kernel: Any) -> types.ExternKernelNode:
    from torch._inductor import ir  # which takes as long as all of PyTorch

    if isinstance(kernel, ir.ExternKernelNode):
        plain = _dataclass_to_dict(kernel.node)  # type: ignore[no-untyped-call]
        text = json.dumps(plain, cls=EnumEncoder)
        node, _ = decode(json_codec, types.Node, text.encode(), kernel.name)
        return types.ExternKernelNode(name=kernel.name, node=node)
    if not hasattr(kernel, "op_overload"):
        raise TypeError(f"expected kernels as a list of fallback kernels, found {described(kernel)} in it")
    name, target = kernel.get_name(), kernel.op_overload
    try:
        if not isinstance(target, (torch._ops.OpOverload, CallTorchBind)):
            raise SerializeError(
                "expected a kernel that calls an operator or a method of a script object, "
                f"found a call of {target!r:.80}"
            )
        args, kwargs = kernel.unflatten_args(kernel.inputs, kernel.constant_args)
        args = kernel.fill_non_provided_args(args, kwargs)
        schema = target.schema(*args[:2]) if isinstance(target, CallTorchBind) else None
        node = types.Node(
            target=target.name(),  # type: ignore[no-untyped-call]
            inputs=_export_inputs(target, args, kwargs, schema),
            outputs=_export_outputs(kernel, schema or schema_of(target)),
            metadata=_metadata(target),
        )
    except SerializeError as error:
        raise located(error, name) from error.__cause__
    return types.ExternKernelNode(name=name, node=node)


def _export_inputs(
    target: Any, args: Sequence[Any], kwargs: dict[str, Any], schema: Any
) -> list[types.NamedArgument]:
    """Write arguments as those of a node of a graph, whose inputs stand for what Inductor has names for."""
    graph, values = Graph(), Values(Program())
    nodes: dict[tuple[str, str], Node] = {}

    def stand_in(value: Any) -> Any:
        reference = _reference(value, values)
        if reference is None:
            return value
        if reference not in nodes:
            nodes[reference] = node = graph.placeholder("x")
            values.references[node] = reference
        return nodes[reference]

    args, kwargs = pytree.tree_map(stand_in, (list(args), kwargs))
    inputs = export_inputs(graph.call_function(target, tuple(args), kwargs), values, schema)
    if values.program.beyond:
        raise SerializeError(f"expected arguments that the format can hold, found {values.program.beyond[0]}")
    return inputs


def _reference(value: Any, values: Values) -> tuple[str, str] | None:
    """How an argument refers to what Inductor has a name for: the member of `Argument`, and the name."""
    from torch._inductor import ir

    if isinstance(value, (ir.Buffer, ir.ReinterpretView)):
        return "as_tensor", str(value.get_name())
    if isinstance(value, ir.TorchBindObject):
        name = str(value.get_name())
        class_fqn = value.get_real_obj()._type().qualified_name()
        values.custom_objs[name] = types.CustomObjArgument(name=name, class_fqn=class_fqn)
        return "as_custom_obj", name
    for kind, member in ((torch.SymInt, "as_sym_int"), (torch.SymFloat, "as_sym_float")):
        if isinstance(value, kind):
            return member, str(value)
    return None


def _metadata(target: Any) -> dict[str, str]:
    from torch._library.custom_ops import _maybe_get_opdef

    # By it the library knows operators that take tensors without their gradients.
    is_custom = isinstance(target, torch._ops.OpOverload) and _maybe_get_opdef(target) is not None
    return {"torch_library_custom_op": "1"} if is_custom else {}


# -- outputs ----------------------------------------------------------------------------------------------


def _export_outputs(kernel: Any, schema: Any) -> list[types.Argument]:
    returns = schema.returns
    if len(returns) == 1:  # some operators give what they changed
        return [_export_output(returns[0], kernel.outputs or kernel.mutation_outputs)]
    return [_export_output(result, output) for result, output in zip(returns, kernel.outputs, strict=False)]


def _export_output(result: Any, output: Any) -> types.Argument:
    kind = str(result.real_type)
    try:
        make = _OUTPUTS[kind]
    except KeyError:
        raise SerializeError(f"expected a result of {', '.join(_OUTPUTS)}, found {kind}") from None
    if kind != "List[Tensor]" and isinstance(output, (list, tuple)):
        (output,) = output
    return make(output)


def _tensor(output: Any) -> types.TensorArgument:
    return types.TensorArgument(name=output.get_name())


def _optional_tensor(output: Any) -> types.Argument:
    argument = types.OptionalTensorArgument
    made = argument.of_none(True) if output is None else argument.of_tensor(_tensor(output))
    return types.Argument.of_optional_tensor(made)


_OUTPUTS: dict[str, Callable[[Any], types.Argument]] = {
    "Tensor": lambda output: types.Argument.of_tensor(_tensor(output)),
    "List[Tensor]": lambda outputs: types.Argument.of_tensors([_tensor(output) for output in outputs]),
    "Optional[Tensor]": _optional_tensor,
    "NoneType": lambda output: types.Argument.of_none(True),
    "int": types.Argument.of_int,
}
