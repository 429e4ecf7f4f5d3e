"""Which nodes must stay in order although none uses a value of the other: some change tensors in place.

Schemas would say which, but without PyTorch there are none. So names tell, by PyTorch's conventions, and
tables list what breaks them; tests compare the tables with the schemas of the installed PyTorch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ..generated import types
from ..memory_groups import MemoryGroups
from ..operators import Target, TargetKind, parse_target
from .naming import Call, calls_of, named_values

#: Operators that change arguments of which their name does not say so -> the flag under which they do; None
#: where they always do.
IN_PLACE: Mapping[str, str | None] = {
    "aten._amp_foreach_non_finite_check_and_unscale_": None,
    "aten._amp_update_scale_": None,
    "aten._batch_norm_impl_index": "training",
    "aten._batch_norm_with_update": None,
    "aten._cummax_helper": None,
    "aten._cummin_helper": None,
    "aten._flash_attention_forward_no_dropout_inplace": None,
    "aten._fused_moving_avg_obs_fq_helper": None,
    "aten._fused_adagrad_": None,
    "aten._fused_adam_": None,
    "aten._fused_adamw_": None,
    "aten._fused_sgd_": None,
    "aten._native_batch_norm_legit": "training",
    "aten.batch_norm": "training",
    "aten.cudnn_batch_norm": "training",
    "aten.fused_moving_avg_obs_fake_quant": None,
    "aten.instance_norm": "use_input_stats",
    "aten.miopen_batch_norm": "training",
    "aten.native_batch_norm": "training",
    "aten.record_stream": None,
    "aten.retain_grad": None,
    "aten.rrelu_with_noise": None,
    "aten.rrelu_with_noise_": None,
    "aten.set_data": None,
    "prims.as_strided": None,
    "prims.copy_to": None,
    "prims.resize": None,
}

# Overloads that write into arguments given for that, but for `out` and what ends in `_out`.
_OUT_OVERLOADS = frozenset(
    """
    out L OutScalar_Other OutScalar_Self OutTensor Q U X a dim_max dim_min dim_values eigenvalues eigvals
    grad_input inverse out_ out_mode output out_rcond_tensor out_tol_tensor result sign values values_stable
    """.split()
)

#: Operators whose results may lie in the memory of their arguments, in `aten` and `prims`.
VIEWS = frozenset(
    """
    _add_batch_dim _autocast_to_full_precision _autocast_to_reduced_precision _conj _fw_primal
    _grad_sum_to_size _indices _make_dual _ncf_unsqueeze _ncf_view _neg_view _nested_get_values
    _nested_view_from_buffer _nested_view_from_jagged _remove_batch_dim _reshape_alias _reshape_from_tensor
    _sparse_broadcast_to _test_autograd_multiple_dispatch_view _unpack_dual _unsafe_view _values adjoint alias
    as_strided as_tensor broadcast_in_dim broadcast_to ccol_indices chunk coalesce col_indices collapse_view
    conj contiguous copy_to cpu crow_indices cuda detach diagonal dsplit expand expand_as flatten get hsplit
    imag indices lift_fresh linalg_diagonal mH mT matrix_H moveaxis movedim narrow numpy_T permute pin_memory
    positive ravel real reshape reshape_as resize resolve_conj resolve_neg row_indices select slice
    slice_inverse split split_dim split_with_sizes squeeze swapaxes swapdims t tensor_split to transpose
    unbind unflatten unfold unsqueeze values view view_as view_as_complex view_as_real view_of view_of_dtype
    vsplit
    """.split()
    # Those whose schemas do not say so; most give back an argument when there is nothing to do.
    + """
    _cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long _cast_Short _to_cpu
    alpha_dropout atleast_1d atleast_2d atleast_3d broadcast_tensors cartesian_prod chain_matmul chalf
    conj_physical data dequantize diag dropout einsum feature_alpha_dropout feature_dropout
    flatten_dense_tensors linalg_multi_dot meshgrid pad sum_to_size take_along_dim _foobar _pack_sequence
    _test_parallel_materialize _test_string_default cumprod_backward device_put histogramdd lift sorted
    to_dense_backward to_mkldnn_backward
    """.split()
    # Sparse and nested tensors lie in the memory of what they are made of.
    + """
    _sparse_compressed_tensor_unsafe _sparse_coo_tensor_unsafe _sparse_bsc_tensor_unsafe
    _sparse_bsr_tensor_unsafe _sparse_csc_tensor_unsafe _sparse_coo_tensor_with_dims_and_tensors
    _sparse_csr_tensor_unsafe sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor
    sparse_csc_tensor sparse_csr_tensor to_dense to_sparse to_sparse_bsc to_sparse_bsr to_sparse_csc
    to_sparse_csr type_as unflatten_dense_tensors unsafe_chunk unsafe_split unsafe_split_with_sizes
    """.split()
)


def _drawing(flags: tuple[str, ...], names: str) -> dict[str, tuple[str, ...]]:
    return {name if "." in name else f"aten.{name}": flags for name in names.split()}


#: Operators that draw random numbers -> the arguments without which they draw none: flags that are off, or a
#: probability of 0.
DRAWS: Mapping[str, tuple[str, ...]] = {
    **_drawing(
        (),
        """
        _fused_dropout _nested_tensor_softmax_with_shape _sample_dirichlet _standard_gamma bernoulli
        bernoulli_ binomial cauchy cauchy_ exponential exponential_ geometric geometric_ log_normal
        log_normal_ multinomial normal normal_ normal_functional poisson rand rand_like randint randint_like
        randn randn_like random random_ randperm uniform uniform_ prims.inductor_rand_eager_offset
        prims.inductor_rand_eager_offsets prims.inductor_seed prims.inductor_seeds prims.normal prims.uniform
        rngprims.philox_rand
        """,
    ),
    **_drawing(
        ("p", "train"),
        """
        alpha_dropout alpha_dropout_ dropout dropout_ feature_alpha_dropout feature_alpha_dropout_
        feature_dropout feature_dropout_ native_dropout
        """,
    ),
    **_drawing(
        ("dropout", "train"),
        "_cudnn_init_dropout_state _cudnn_rnn _lstm_mps gru lstm miopen_rnn rnn_relu rnn_tanh",
    ),
    **_drawing(
        ("training",),
        "rrelu rrelu_ rrelu_with_noise rrelu_with_noise_ rrelu_with_noise_functional",
    ),
    **_drawing(
        ("dropout_p",),
        """
        _cudnn_attention_backward _cudnn_attention_forward _efficient_attention_forward
        _fill_mem_eff_dropout_mask_ _flash_attention_forward _flash_attention_forward_no_dropout_inplace
        _fused_sdp_choice _scaled_dot_product_attention_math _scaled_dot_product_attention_math_for_mps
        _scaled_dot_product_cudnn_attention _scaled_dot_product_cudnn_attention_backward
        _scaled_dot_product_efficient_attention _scaled_dot_product_efficient_attention_backward
        _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu
        _scaled_dot_product_fused_attention_overrideable _triton_scaled_dot_attention
        scaled_dot_product_attention
        """,
    ),
}

# Namespaces that the tables know. Any other operator may do whatever its name does not rule out.
_KNOWN = ("aten", "prims")

# Higher-order operators that change an object, and those that do something beside the program.
_ON_OBJECTS = ("call_torchbind",)
_OUTSIDE = ("print", "aoti_call_delegate", "executorch_call_delegate", "inductor_compiled_code")

# What stands for the state of the process, which every node sees.
_EVERYTHING = ""

# What stands for the state of the random generators, which a draw changes and no other node sees. No name of
# a value has a space.
_GENERATORS = "random generators"


def effects_of(
    graph: types.Graph, calls: Sequence[Call], together: Collection[str] = ()
) -> Iterator[tuple[int, int]]:
    """Which node must come before which other one because of what one of them changes.

    Args:
        graph: The graph.
        calls: Its nodes in the order in which they run.
        together: Inputs that may lie in one memory.

    Returns:
        Pairs of positions; their number is linear in the size of the graph.
    """
    changes = [_changed(call) for call in calls]
    if not any(changes):
        return
    memory = _memory(graph, calls, together)
    changed = {memory.of(name) for names in changes for name in names}
    everything = [_EVERYTHING] if _EVERYTHING in changed else []
    # What changes some memory is a fence for all that see it.
    fences: dict[str, int] = {}
    since: dict[str, list[int]] = {}
    for index, (call, names) in enumerate(zip(calls, changes, strict=True)):
        fenced = {memory.of(name) for name in names}
        for place in {memory.of(name) for name in _memory_names(call)}.union(everything, fenced) & changed:
            if place in fences:
                yield fences[place], index
            if place in fenced:
                yield from ((earlier, index) for earlier in since.pop(place, ()))
                fences[place] = index
            else:
                since.setdefault(place, []).append(index)


def _memory_names(call: Call) -> list[str]:
    return [value.name for value in (*call.uses, *call.definitions) if not value.is_symbolic]


def _changed(call: Call) -> list[str]:
    """The values that a node changes, and what stands for the state of something else."""
    changed = _changed_values(call)
    return [*changed, _GENERATORS] if _draws(call) else changed


def _draws(call: Call) -> bool:
    """Whether a node draws random numbers, or calls something that does."""
    flags = DRAWS.get(_packet(call.node.target))
    if flags is not None:
        return all(_is_on(call, flag) for flag in flags)
    named = [_packet(item.arg.as_operator) for item in call.node.inputs if item.arg.type == "as_operator"]
    return any(packet in DRAWS for packet in named) or any(
        _draws(each) for graph in call.subgraphs for each in calls_of(graph.graph)
    )


def _packet(text: str) -> str:
    target = parse_target(text)
    return "" if target is None else target.packet


def _changed_values(call: Call) -> list[str]:
    target = parse_target(call.node.target)
    inner = [
        name for graph in call.subgraphs for each in calls_of(graph.graph) for name in _changed_values(each)
    ]
    if _EVERYTHING in inner or (target is not None and _is_global(target)):
        return [_EVERYTHING]
    everything = [value.name for value in call.uses if not value.is_symbolic]
    if inner:  # the subgraph was given what it changes
        return everything
    if target is None or target.kind is TargetKind.SYMBOLIC:
        return []
    if target.kind is TargetKind.EXTENSION:  # its name follows no rule that we know
        return everything
    if target.kind is TargetKind.HIGHER_ORDER:
        return everything if target.name in _ON_OBJECTS else []
    if any(named.arg.type == "as_custom_obj" for named in call.node.inputs):
        return everything  # objects may change, whatever the operator is called
    if target.packet in IN_PLACE:
        return everything if _is_on(call, IN_PLACE[target.packet]) else []
    if _is_in_place(target):
        return _worked_on(call) if target.namespace in _KNOWN else everything
    if _has_outs(target):
        return everything
    # An operator without a result is called for what it does; the known ones only check something.
    return everything if not call.node.outputs and target.namespace not in _KNOWN else []


def _is_global(target: Target) -> bool:
    return target.kind in (TargetKind.FUNCTORCH, TargetKind.AUTOCAST) or (
        target.kind is TargetKind.HIGHER_ORDER and target.name in _OUTSIDE
    )


def _is_in_place(target: Target) -> bool:
    if target.name.endswith("__"):
        return target.name.startswith("__i")
    return target.name.endswith("_")


def _has_outs(target: Target) -> bool:
    overload = target.overload
    return target.name.endswith("_out") or overload.endswith("_out") or overload in _OUT_OVERLOADS


def _is_on(call: Call, flag: str | None) -> bool:
    """Whether an argument is given that is no False and no 0; None stands for a value that is not known."""
    return flag is None or any(
        not (named.arg.type in ("as_bool", "as_int", "as_float") and named.arg.value in (False, 0))
        for named in call.node.inputs
        if named.name == flag
    )


def _worked_on(call: Call) -> list[str]:
    """What an in-place operator works on: the argument `self`, or of a few operators another first one.

    Arguments by name come in any order; then it may be any of them.
    """
    inputs = call.node.inputs
    worked_on = [named for named in inputs if named.name == "self"]
    if not worked_on:
        by_name = any(named.kind is types.ArgumentKind.KEYWORD for named in inputs[:1])
        worked_on = inputs if by_name else inputs[:1]
    return [value.name for value in named_values(worked_on) if not value.is_symbolic]


def _memory(graph: types.Graph, calls: Sequence[Call], together: Collection[str]) -> MemoryGroups[str]:
    """Which values may lie in one memory."""
    memory = MemoryGroups[str]()
    held: dict[str, list[str]] = {}
    for constant in graph.constants or ():
        held.setdefault(constant.target, []).append(constant.name)
    for names in (list(together), *held.values(), *map(_sharing, calls)):
        for name in names[1:]:
            memory.join(name, names[0])
    return memory


def _sharing(call: Call) -> list[str]:
    """The values of a node that may lie in one memory."""
    target = parse_target(call.node.target)
    if target is not None and target.kind is TargetKind.SYMBOLIC:
        return []
    if target is None or target.kind is not TargetKind.OPERATOR or target.namespace not in _KNOWN:
        return _memory_names(call)
    if _is_in_place(target):
        return [*_worked_on(call), *(value.name for value in call.definitions if not value.is_symbolic)]
    return _memory_names(call) if target.name in VIEWS or _has_outs(target) else []
