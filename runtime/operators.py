"""What a node may call: the tables behind `Node.target` and `as_operator`.

A target is text from a file, so it is never followed with getattr. It is one of

* `torch.ops.NAMESPACE.NAME.OVERLOAD`: an operator, looked up in the dispatcher,
* `torch.ops.higher_order.NAME`: a higher-order operator, from `HIGHER_ORDER`,
* a Python function by its full name, from `SYMBOLIC_FUNCTIONS` or `FUNCTORCH_FUNCTIONS`,

or it is refused. The tables hold names only: exporting uses them to name what a node calls, importing to
find it again, validation to judge a target where torch is not installed.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from types import MappingProxyType


class TargetKind(enum.Enum):
    """What a node calls."""

    OPERATOR = "operator"
    HIGHER_ORDER = "higher-order operator"
    SYMBOLIC = "symbolic function"
    FUNCTORCH = "functorch function"
    EXTENSION = "extension"


@dataclass(frozen=True, slots=True)
class Target:
    """A node target taken apart.

    Attributes:
        kind: What it is.
        namespace: The operator's namespace, such as `aten`; `higher_order`; the module of a Python
            function; the namespace of an extension.
        name: The operator's or function's name.
        overload: The operator's overload, `default` for the one without a name; empty for everything else.
    """

    kind: TargetKind
    namespace: str
    name: str
    overload: str = ""

    @property
    def packet(self) -> str:
        """The operator without its overload, as the deny list names it: `aten.set_`."""
        return f"{self.namespace}.{self.name}"


@dataclass(frozen=True, slots=True)
class SymbolicFunction:
    """A Python function over symbolic numbers.

    Attributes:
        parameters: The names that PyTorch writes as `NamedArgument.name`, in order.
        optional: How many parameters at the end may be left out.
        read_by_torch: Whether PyTorch reads it back.
    """

    parameters: tuple[str, ...]
    optional: int = 0
    read_by_torch: bool = True


@dataclass(frozen=True, slots=True)
class FunctorchFunction:
    """A Python function that steers functorch.

    Attributes:
        required: How many arguments it needs.
        optional: How many more it takes.
        results: How many results it has.
        levels: How many levels it puts on functorch's stack. The stack belongs to the process, not to the
            program: a program that leaves a level behind would change what is computed after it.
    """

    required: int
    optional: int = 0
    results: int = 1
    levels: int = 0


def _symbolic_functions() -> dict[str, SymbolicFunction]:
    unary = ("neg", "pos")
    arithmetic = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift")
    relations = ("eq", "ne", "lt", "le", "gt", "ge", "and_", "or_")
    table = {f"_operator.{name}": SymbolicFunction(("a",)) for name in unary}
    table |= {f"_operator.{name}": SymbolicFunction(("a", "b")) for name in arithmetic + relations}
    table |= {
        "math.trunc": SymbolicFunction(("x",)),
        "torch.sym_float": SymbolicFunction(("a",)),
        "torch.sym_int": SymbolicFunction(("a",)),
        "torch.sym_not": SymbolicFunction(("a",)),
        "torch._sym_sqrt": SymbolicFunction(("a",)),
        "torch.sym_max": SymbolicFunction(("a", "b")),
        "torch.sym_min": SymbolicFunction(("a", "b")),
        "torch.sym_ite": SymbolicFunction(("b", "t", "f")),
        "torch.sym_sum": SymbolicFunction(("args",)),
        "_operator.abs": SymbolicFunction(("a",)),
        "math.ceil": SymbolicFunction(("x",)),
        "math.floor": SymbolicFunction(("x",)),
        "builtins.round": SymbolicFunction(("number", "ndigits"), optional=1, read_by_torch=False),
    }
    return table


#: Python functions over symbolic numbers, by the text PyTorch writes as target.
SYMBOLIC_FUNCTIONS: Mapping[str, SymbolicFunction] = MappingProxyType(_symbolic_functions())

#: Functions that `torch.vmap` and `torch.func.jvp` leave in a program exported for training.
FUNCTORCH_FUNCTIONS: Mapping[str, FunctorchFunction] = MappingProxyType(
    {
        f"torch._functorch.predispatch.{name}": function
        for name, function in {
            "lazy_load_decompositions": FunctorchFunction(0),
            "_vmap_increment_nesting": FunctorchFunction(2, levels=1),
            "_vmap_decrement_nesting": FunctorchFunction(0, levels=-1),
            "_add_batch_dim": FunctorchFunction(3),
            "_remove_batch_dim": FunctorchFunction(4),
            "_jvp_increment_nesting": FunctorchFunction(0, levels=1),
            "_jvp_decrement_nesting": FunctorchFunction(0, levels=-1),
            "_enter_dual_level": FunctorchFunction(0, levels=1),
            "_exit_dual_level": FunctorchFunction(1, levels=-1),
            "_make_dual": FunctorchFunction(2, optional=1),
            "_unpack_dual": FunctorchFunction(1, optional=1, results=2),
            "_unwrap_for_grad": FunctorchFunction(2),
        }.items()
    }
)

#: Higher-order operators whose calls need more than the generic form, with what they need: not written yet,
#: nor read. Some are refused when they are read, since they run code that the file brings.
NOT_YET: Mapping[str, str] = MappingProxyType(
    {
        "triton_kernel_wrapper_functional": "Triton kernels",
        "triton_kernel_wrapper_mutation": "Triton kernels",
    }
)

#: Higher-order operators to which a text is more than a text: the name of a method, the format of a print.
OF_TEXTS = frozenset({"call_torchbind", "print"})

#: Higher-order operators that a program may call, with what they do.
HIGHER_ORDER: Mapping[str, str] = MappingProxyType(
    {
        "aoti_call_delegate": "a module lowered by AOTInductor, by its name",
        "associative_scan": "parallel prefix over a subgraph",
        "auto_functionalized": "an operator with side effects, made functional",
        "auto_functionalized_v2": "an operator with side effects on views, made functional",
        "call_torchbind": "a method of a custom object",
        "cond": "one of two subgraphs",
        "executorch_call_delegate": "a module lowered by ExecuTorch's means, by its name",
        "flat_apply": "a function of nested arguments, one of `CALLEES`",
        "flex_attention": "attention with a score subgraph and a mask subgraph",
        "foreach_map": "a subgraph over lists of tensors",
        "hints_wrapper": "a subgraph with hints for a compiler",
        "invoke_subgraph": "a subgraph that is compiled once",
        "map_impl": "a subgraph over the first dimension",
        "out_dtype": "an operator with a wider output dtype",
        "print": "formatted text on the terminal",
        "scan": "a loop that carries state and stacks outputs",
        "strict_mode": "a subgraph traced strictly",
        "tag_activation_checkpoint": "a subgraph that is recomputed in backward",
        "while_loop": "a loop of a condition subgraph and a body subgraph",
        "while_loop_stack_output": "a loop that keeps what every step carried",
        "with_effects": "an operator with side effects, ordered by a token",
        "wrap": "a subgraph",
        "wrap_activation_checkpoint": "a subgraph that is recomputed in backward",
        "wrap_with_autocast": "a subgraph under autocast",
        "wrap_with_set_grad_enabled": "a subgraph with gradients on or off",
    }
)

#: Calls a function of nested arguments; no other node may, nor be given it.
FLAT_APPLY = "torch.ops.higher_order.flat_apply"

#: The functions that `flat_apply` may call. The one calls `apply` of the class that its first argument names:
#: it would import any, see `APPLIED`.
CALLEES = ("torch.export.custom_ops._call_custom_autograd_function_in_pre_dispatch",)

#: The classes that such a call may name.
APPLIED = ("torch._dynamo._trace_wrapped_higher_order_op.ModIndex",)

#: Higher-order operators that would let a file reach outside of itself, with the reason: refused unless the
#: caller allows them.
DENIED_HIGHER_ORDER: Mapping[str, str] = MappingProxyType(
    {
        "aoti_call_delegate": "it calls a compiled library that the file names",
        "executorch_call_delegate": "it calls a compiled module that the file names",
        "inductor_compiled_code": "it calls compiled code that the file names",
        "inline_asm_elementwise": "it runs assembly that the file holds",
        "invoke_leaf_function": "it calls Python functions of the process by number",
        "print": "it prints what the file says",
        "trace_wrapped": "it calls a Python function",
    }
)


def _denied() -> dict[str, str]:
    by_reason = {
        "it takes tensors whose sizes nothing checks": """
            _quantized.conv_transpose1d_prepack _quantized.linear_prepack_fp16
            aten._adaptive_avg_pool2d_backward aten._adaptive_avg_pool3d_backward aten._cdist_backward
            aten._cholesky_solve_helper aten._chunk_cat aten._compute_linear_combination
            aten._ctc_loss_backward aten._cummax_helper aten._cummin_helper
            aten._dyn_quant_matmul_4bit aten._dyn_quant_pack_4bit_weight aten._fused_sgd
            aten._fused_sgd_ aten._log_softmax_backward_data
            aten._nested_compute_contiguous_strides_offsets aten._nnpack_spatial_convolution
            aten._pdist_backward aten._saturate_weight_to_fp16
            aten._scaled_dot_product_flash_attention_for_cpu_backward
            aten._sobol_engine_initialize_state_ aten._stack
            aten._thnn_differentiable_gru_cell_backward aten._thnn_differentiable_lstm_cell_backward
            aten._transform_bias_rescale_qkv aten._weight_norm_interface_backward
            aten.adaptive_avg_pool3d_backward aten.avg_pool2d_backward aten.avg_pool3d_backward
            aten.batch_norm_backward aten.batch_norm_update_stats aten.fbgemm_linear_quantize_weight
            aten.fbgemm_pack_gemm_matrix_fp16 aten.grid_sampler_2d_backward
            aten.grid_sampler_3d_backward aten.mkldnn_rnn_layer_backward
            aten.multi_margin_loss_backward aten.multilabel_margin_loss_backward
            aten.native_batch_norm_backward aten.native_layer_norm_backward aten.quantized_gru
            aten.quantized_lstm_cell aten.reflection_pad1d_backward aten.reflection_pad2d_backward
            aten.reflection_pad3d_backward aten.replication_pad1d_backward
            aten.replication_pad2d_backward aten.replication_pad3d_backward
            aten.smooth_l1_loss_backward aten.unfold_backward mkl._mkl_reorder_linear_weight
            mkldnn._convolution_transpose_pointwise mkldnn._linear_pointwise
            mkldnn._reorder_convolution_transpose_weight mkldnn._reorder_convolution_weight
            mkldnn._reorder_mkldnn_rnn_layer_weight mkldnn_prepacked.conv2d_run
            onednn.linear_prepack_fp16 quantized.embedding_bag_2bit_unpack
            quantized.linear_prepack_fp16
        """,
        "it takes indices that nothing checks": """
            aten._convert_indices_from_coo_to_csr aten._convert_indices_from_csr_to_coo
            aten._embedding_bag_backward aten._embedding_bag_dense_backward
            aten._embedding_bag_per_sample_weights_backward aten._embedding_bag_sparse_backward
            aten._segment_reduce_backward aten._sparse_bsc_tensor_unsafe
            aten._sparse_bsr_tensor_unsafe aten._sparse_compressed_tensor_unsafe
            aten._sparse_coo_tensor_unsafe aten._sparse_coo_tensor_with_dims_and_tensors
            aten._sparse_csc_tensor_unsafe aten._sparse_csr_tensor_unsafe
            aten._sparse_mm_reduce_impl_backward aten.adaptive_max_pool2d_backward
            aten.adaptive_max_pool3d_backward aten.embedding_backward aten.embedding_dense_backward
            aten.embedding_sparse_backward aten.fractional_max_pool2d_backward
            aten.fractional_max_pool3d_backward aten.max_pool2d_with_indices_backward
            aten.max_pool3d_with_indices_backward
        """,
        "it replaces a tensor's storage": "aten.set aten.set_ aten.set_data",
        "it takes dimensions that nothing checks": """
            aten._new_zeros_with_same_feature_meta aten._remove_batch_dim aten._sobol_engine_ff_
        """,
        "it makes quantized tensors, which few operators expect": """
            aten._make_per_channel_quantized_tensor aten._make_per_tensor_quantized_tensor
        """,
        "it views storage by offsets that nothing checks": """
            aten._nested_view_from_buffer aten._nested_view_from_buffer_copy
        """,
        "it views storage by strides that nothing checks": """
            aten._reshape_alias aten._reshape_alias_copy
        """,
        "it makes a tensor without memory, which others read": "aten._efficientzerotensor",
        "it maps a file of the machine": "aten.from_file",
        "it reads a file of the machine": "debugprims.load_tensor",
        "it shows an address of the process": "mkldnn.data_ptr",
        "it takes lengths that nothing checks if told so": "aten.segment_reduce",
        "it touches the allocator of a device": "aten.record_stream",
        "it writes a file of the machine": "aten.save",
        "it writes to the terminal": "aten._print",
    }
    return {name: reason for reason, names in by_reason.items() for name in names.split()}


#: Operators of which every overload is refused unless the caller allows it, with the reason. Those that trust
#: what they are given were found by `tests/helpers/operator_search.py`.
DENIED_OPERATORS: Mapping[str, str] = MappingProxyType(_denied())

#: Namespaces of which every operator is refused unless the caller allows it, with the reason.
DENIED_NAMESPACES: Mapping[str, str] = MappingProxyType(
    {
        "c10d": "its operators use the process groups of the machine",
        "fsdp": "its operators resize storage and use process groups",
        "inductor": "its operators reinterpret and resize storage without bounds checks",
        "prim": "its operators are instructions of TorchScript's interpreter",
        "profiler": "its operators hold raw handles",
        "static_runtime": "its operators trust their caller to have checked the arguments",
        "streams": "its operators use streams and events of a device by number",
        "symm_mem": "its operators use raw memory of other processes",
    }
)

_ARITHMETIC = "add sub subtract mul multiply div divide true_divide floor_divide copy".split()

#: Operators of `aten` that take a number in place of a tensor. Of other namespaces each may.
NUMBERS_AS_TENSORS: frozenset[str] = frozenset(
    f"aten.{name}{suffix}" for name in _ARITHMETIC for suffix in ("", "_")
) | {"aten.to", "aten._to_copy", "aten._conj"}

_IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]*"
_OPERATOR = re.compile(rf"torch\.ops\.({_IDENTIFIER})\.({_IDENTIFIER})\.({_IDENTIFIER})")
_HIGHER_ORDER = re.compile(rf"torch\.ops\.higher_order\.({_IDENTIFIER})")
_EXTENSION = re.compile(rf"#({_IDENTIFIER}(?:\.{_IDENTIFIER})*):({_IDENTIFIER}(?:\.{_IDENTIFIER})*)")


def parse_target(text: str) -> Target | None:
    """Takes a node target apart; None where it is none of what a node may call.

    That a target parses says nothing of whether it exists or is permitted: see `refusal`.

    Example:
        >>> parse_target("torch.ops.aten.add.Tensor").packet
        'aten.add'
        >>> parse_target("os.system") is None
        True
    """
    if match := _OPERATOR.fullmatch(text):
        namespace, name, overload = match.groups()
        return None if namespace == "higher_order" else Target(TargetKind.OPERATOR, namespace, name, overload)
    if match := _HIGHER_ORDER.fullmatch(text):
        return Target(TargetKind.HIGHER_ORDER, "higher_order", match.group(1))
    for kind, table in (
        (TargetKind.SYMBOLIC, SYMBOLIC_FUNCTIONS),
        (TargetKind.FUNCTORCH, FUNCTORCH_FUNCTIONS),
    ):
        if text in table:
            module, _, name = text.rpartition(".")
            return Target(kind, module, name)
    if match := _EXTENSION.fullmatch(text):
        return Target(TargetKind.EXTENSION, match.group(1), match.group(2))
    return None


def refusal(target: Target, allowed: Container[str] = ()) -> str | None:
    """Why a program that nobody vouches for may not call a target; None where it may.

    Args:
        target: The target.
        allowed: Operators that the caller allows nevertheless, as `namespace.name`.

    Example:
        >>> refusal(parse_target("torch.ops.aten.from_file.default"))
        'it maps a file of the machine'
        >>> refusal(parse_target("torch.ops.aten.from_file.default"), {"aten.from_file"})
    """
    if target.packet in allowed:
        return None
    if target.kind is TargetKind.OPERATOR:
        return DENIED_OPERATORS.get(target.packet) or DENIED_NAMESPACES.get(target.namespace)
    if target.kind is TargetKind.HIGHER_ORDER:
        return DENIED_HIGHER_ORDER.get(target.name)
    return None


def allowing(target: Target) -> str:
    """The hint for whoever runs into `refusal` with a file of their own.

    Example:
        >>> allowing(parse_target("torch.ops.aten.from_file.default"))
        "Pass allow_operators=['aten.from_file'] if you trust the author of the file"
    """
    return allowing_packet(target.packet)


def allowing_packet(packet: str) -> str:
    """The hint of `allowing`, of an operator by its name without overload.

    Example:
        >>> allowing_packet("aten.from_file")
        "Pass allow_operators=['aten.from_file'] if you trust the author of the file"
    """
    return f"Pass allow_operators=[{packet!r}] if you trust the author of the file"
