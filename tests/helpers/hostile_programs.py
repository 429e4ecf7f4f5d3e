"""Hostile programs: operators that reach out, graphs, symbols and weights that lie."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pt2wire
import torch
from pt2wire.generated import types

from .hostile import (
    MARKER,
    PROGRAM,
    WEIGHTS,
    Tree,
    add,
    add_keyword,
    call,
    graph,
    honest_records,
    plain,
    records,
    root,
    set_size,
    set_sizes,
    signature,
    sizes,
    tree,
)

A = types.Argument
_POSITIONAL = types.ArgumentKind.POSITIONAL

# -- operators --------------------------------------------------------------------------------------------


def _calls(target: str, *arguments: tuple[str, types.Argument]) -> Callable[[Tree], None]:
    """Lets the call of linear be one of another operator, with the arguments given."""

    def change(found: Tree) -> None:
        node = call(found, "aten.linear")
        node.target = f"torch.ops.{target}"
        node.inputs = [types.NamedArgument(name, value, _POSITIONAL) for name, value in arguments]

    return change


def _tensor(name: str) -> types.Argument:
    return A.of_tensor(types.TensorArgument(name))


_X = _tensor("x")
_CSR = A.of_layout(types.Layout.SparseCsr)
_OPERATORS: dict[str, tuple[Callable[[Tree], object], str]] = {
    "from_file that writes": (
        _calls(
            "aten.from_file.default",
            *(("filename", A.of_string(MARKER)), ("shared", A.of_bool(True)), ("size", A.of_int(12))),
            ("dtype", A.of_scalar_type(types.ScalarType.FLOAT)),
        ),
        "it would make and fill a file",
    ),
    "from_file that reads": (
        _calls(
            "aten.from_file.default",
            *(("filename", A.of_string("/etc/passwd")), ("size", A.of_int(12))),
            ("dtype", A.of_scalar_type(types.ScalarType.FLOAT)),
        ),
        "it would read a file of the machine",
    ),
    "save": (_calls("aten.save.default", ("x", _X), ("filename", A.of_string(MARKER))), "it writes a file"),
    "load_tensor": (
        _calls("debugprims.load_tensor.default", ("name", A.of_string(MARKER))),
        "it reads a file of the machine",
    ),
    "set_ of a storage": (
        _calls("aten.set_.source_Tensor", ("self", _X), ("source", _tensor("p_linear_weight"))),
        "it exchanges storages",
    ),
    "set_data": (
        _calls("aten.set_data.default", ("self", _X), ("new_data", _tensor("p_linear_weight"))),
        "it exchanges storages",
    ),
    "set_ of a size": (
        _calls(
            "aten.set_.source_Tensor_storage_offset",
            *(("self", _X), ("source", _X), ("storage_offset", A.of_int(1 << 40))),
            ("size", A.of_ints([1 << 20])),
        ),
        "it reaches beyond a storage",
    ),
    "_reinterpret_tensor": (
        _calls(
            "inductor._reinterpret_tensor.default",
            *(("self", _X), ("size", A.of_ints([1 << 30])), ("stride", A.of_ints([1]))),
            ("offset_increment", A.of_int(1 << 40)),
        ),
        "it reads memory without bounds",
    ),
    "resize_storage_bytes_": (
        _calls("inductor.resize_storage_bytes_.default", ("variable", _X), ("new_size", A.of_int(0))),
        "it frees memory that tensors use",
    ),
    "_nested_view_from_buffer": (
        _calls(
            "aten._nested_view_from_buffer.default",
            *(("self", _X), ("nested_size", _X), ("nested_strides", _X), ("offsets", _X)),
        ),
        "it views memory by offsets from the file",
    ),
    "_sparse_coo_tensor_unsafe": (
        _calls(
            "aten._sparse_coo_tensor_unsafe.default",
            *(("indices", _X), ("values", _X), ("size", A.of_ints([4, 3]))),
        ),
        "its indices are not checked",
    ),
    "sparse_coo_tensor": (
        _calls(
            "aten.sparse_coo_tensor.indices_size",
            *(("indices", _X), ("values", _X), ("size", A.of_ints([4, 3]))),
        ),
        "its indices are not checked",
    ),
    "_gather_sparse_backward": (
        _calls(
            "aten._gather_sparse_backward.default",
            *(("self", _X), ("dim", A.of_int(0)), ("index", _X), ("grad", _X)),
        ),
        "its indices are not checked",
    ),
    "_pad_packed_sequence": (
        _calls(
            "aten._pad_packed_sequence.default",
            *(("data", _X), ("batch_sizes", _X), ("batch_first", A.of_bool(False))),
            *(("padding_value", A.of_float(0.0)), ("total_length", A.of_int(-1))),
        ),
        "its sizes of batches are not checked",
    ),
    "lstm of packed data": (
        _calls(
            "aten.lstm.data",
            *(
                ("data", _X),
                ("batch_sizes", _X),
                ("hx", A.of_tensors([_X.as_tensor])),
                ("params", A.of_tensors([])),
            ),
            *(("has_biases", A.of_bool(True)), ("num_layers", A.of_int(1)), ("dropout", A.of_float(0.0))),
            *(("train", A.of_bool(False)), ("bidirectional", A.of_bool(False))),
        ),
        "its sizes of batches are not checked",
    ),
    "_sparse_compressed_tensor_with_dims": (
        _calls(
            "aten._sparse_compressed_tensor_with_dims.default",
            *(("nnz", A.of_int(9)), ("dense_dim", A.of_int(0)), ("size", A.of_ints([4, 3]))),
            *(("blocksize", A.of_ints([])), ("index_dtype", A.of_scalar_type(types.ScalarType.LONG))),
            *(("dtype", A.of_scalar_type(types.ScalarType.FLOAT)), ("layout", _CSR)),
        ),
        "its indices are what the memory held",
    ),
    "empty with indices": (
        _calls("aten.empty.memory_format", ("size", A.of_ints([4, 3])), ("layout", _CSR)),
        "its indices are what the memory held",
    ),
    "empty for oneDNN": (
        _calls(
            "aten.empty.memory_format",
            *(("size", A.of_ints([4, 3])), ("layout", A.of_layout(types.Layout._mkldnn))),
        ),
        "few operators expect such a tensor",
    ),
    "to_mkldnn": (_calls("aten.to_mkldnn.default", ("self", _X)), "few operators expect such a tensor"),
    "slow_conv_transpose2d": (
        _calls(
            "aten.slow_conv_transpose2d.default",
            *(("self", _X), ("weight", _X), ("kernel_size", A.of_ints([0, 0]))),
        ),
        "it divides by sizes from the file",
    ),
    "_fused_adam_": (
        _calls(
            "aten._fused_adam_.default",
            *((name, A.of_tensors([_X.as_tensor])) for name in ("self", "grads", "exp_avgs", "exp_avg_sqs")),
            *(("max_exp_avg_sqs", A.of_tensors([])), ("state_steps", A.of_tensors([_X.as_tensor]))),
            *((name, A.of_float(0.5)) for name in ("lr", "beta1", "beta2", "weight_decay", "eps")),
            *(("amsgrad", A.of_bool(True)), ("maximize", A.of_bool(False))),
        ),
        "it trusts lists to be of one length",
    ),
    "_reshape_alias": (
        _calls(
            "aten._reshape_alias.default",
            *(("self", _X), ("size", A.of_ints([4, 1 << 20])), ("stride", A.of_ints([1, 1]))),
        ),
        "it views memory by strides from the file",
    ),
    "_efficientzerotensor": (
        _calls("aten._efficientzerotensor.default", ("size", A.of_ints([4, 2]))),
        "it makes a tensor without memory",
    ),
    "_make_per_tensor_quantized_tensor": (
        _calls(
            "aten._make_per_tensor_quantized_tensor.default",
            *(("self", _X), ("scale", A.of_float(0.1)), ("zero_point", A.of_int(0))),
        ),
        "few operators expect quantized tensors",
    ),
    "native_layer_norm_backward": (
        _calls(
            "aten.native_layer_norm_backward.default",
            *(("grad_out", _X), ("input", _X), ("normalized_shape", A.of_ints([3])), ("mean", _X)),
            *(("rstd", _X), ("weight", A.of_none(True)), ("bias", A.of_none(True))),
            ("output_mask", A.of_bools([True, False, False])),
        ),
        "the sizes of what it is given are not checked",
    ),
    "_print": (_calls("aten._print.default", ("s", A.of_string("x"))), "it writes to the terminal"),
    "prim.Print": (_calls("prim.Print.default", ("s", A.of_string("x"))), "instructions of TorchScript"),
    "profiler": (
        _calls("profiler._record_function_enter_new.default", ("name", A.of_string("x"))),
        "it holds handles",
    ),
    "a process group": (
        _calls("c10d.barrier.default", ("tensor", _X)),
        "it uses the processes of the machine",
    ),
    "symmetric memory": (
        _calls("symm_mem.get_remote_tensors.default", ("x", _X), ("group_name", A.of_string("0"))),
        "it reads memory of other processes",
    ),
    "static_runtime": (
        _calls("static_runtime.signed_log1p.default", ("input", _X)),
        "it trusts its arguments",
    ),
    "mkldnn.data_ptr": (_calls("mkldnn.data_ptr.default", ("t", _X)), "it shows an address"),
    "mkldnn_rnn_layer": (
        _calls(
            "aten.mkldnn_rnn_layer.default",
            *(("input", _X), *((f"weight{index}", _X) for index in range(4)), ("hx_", _X), ("cx_", _X)),
            *(("reverse", A.of_bool(False)), ("batch_sizes", A.of_ints([])), ("mode", A.of_int(2))),
            *(("hidden_size", A.of_int(400)), ("num_layers", A.of_int(1)), ("has_biases", A.of_bool(True))),
            *((name, A.of_bool(False)) for name in ("bidirectional", "batch_first", "train")),
        ),
        "the sizes of what it is given are not checked",
    ),
    "qconv_prepack": (
        _calls(
            "onednn.qconv_prepack.default",
            *(("weight", _X), ("w_scales", _X), ("x_scale", A.of_float(0.1)), ("x_zp", A.of_int(0))),
            *(("stride", A.of_ints([0, 0])), ("padding", A.of_ints([0, 0]))),
            *(("dilation", A.of_ints([1, 1])), ("groups", A.of_int(0)), ("x_shape", A.of_none(True))),
        ),
        "it divides by the number of groups",
    ),
    "a packed weight": (
        _calls("quantized.linear_prepack.default", ("W", _X), ("B", A.of_none(True))),
        "packed weights are trusted",
    ),
    "record_stream": (_calls("aten.record_stream.default", ("self", _X), ("s", A.of_int(7))), "raw streams"),
    "an operator that does not exist": (
        _calls("aten.evil.default", ("self", _X)),
        "operators are registered",
    ),
    "an overload that does not exist": (_calls("aten.add.evil", ("self", _X)), "overloads are registered"),
    "a namespace that does not exist": (_calls("evil.add.default", ("self", _X)), "operators are registered"),
    "a higher-order print": (
        _calls("higher_order.print", ("", A.of_string("{0.__class__.__init__.__globals__}")), ("", _X)),
        "str.format of the file's text reads attributes",
    ),
    "a leaf function": (
        _calls("higher_order.invoke_leaf_function", ("", A.of_int(0))),
        "functions by number",
    ),
    "a compiled module": (
        _calls("higher_order.aoti_call_delegate", ("", A.of_string("/tmp/evil.so")), ("", _X)),
        "libraries by path",
    ),
    "assembly": (
        _calls("higher_order.inline_asm_elementwise", ("", _X), ("", A.of_string("nop"))),
        "assembly of the file",
    ),
    "trace_wrapped": (_calls("higher_order.trace_wrapped", ("", _X)), "functions of Python"),
    "a Triton kernel": (
        _calls("higher_order.triton_kernel_wrapper_functional", ("", A.of_string("kernel"))),
        "kernels are code",
    ),
    "dimensions without end": (
        _calls(
            "aten.roll.default",
            *(("self", _X), ("shifts", A.of_ints([1] * 50_000)), ("dims", A.of_ints([0] * 50_000))),
        ),
        "it would call itself once for each",
    ),
    "arguments by position with names": (
        _calls("higher_order.call_torchbind", ("a", A.of_string("_system")), ("b", _X)),
        "names hide no argument",
    ),
    "an object's method": (
        _calls("higher_order.call_torchbind", ("", A.of_string("system"))),
        "methods by name",
    ),
}
for _name, (_change, _proves) in _OPERATORS.items():
    add("operators", _name, _proves, tree(_change))


# -- graphs -----------------------------------------------------------------------------------------------


def _use(name: str) -> Callable[[Tree], None]:
    return lambda found: setattr(call(found, "aten.linear").inputs[0], "arg", _tensor(name))


def _argument(position: int, value: types.Argument) -> Callable[[Tree], None]:
    return lambda found: setattr(call(found, "aten.linear").inputs[position], "arg", value)


def _swap(found: Tree, one: int, two: int) -> None:
    nodes = graph(found).nodes
    nodes[one], nodes[two] = nodes[two], nodes[one]


def _subgraph(found: Tree, change: Callable[[types.Graph], object]) -> None:
    graphs = [named.arg for named in call(found, "cond").inputs if named.arg.type == "as_graph"]
    change(graphs[0].as_graph.graph)


def _same_place(found: Tree) -> None:
    """Both inputs are one name."""
    first, second = signature(found).input_specs[:2]
    second.parameter.parameter_name = first.parameter.parameter_name


def _choice(found: Tree) -> list[types.NamedArgument]:
    """The arguments of the choice, in PyTorch's form alone."""
    node = call(found, "cond")
    node.exact_inputs = None
    return node.inputs


_GRAPHS: dict[str, tuple[Callable[[Tree], object], str]] = {
    "a value of nowhere": (_use("evil"), "values are defined before they are used"),
    "a value of later": (lambda t: _swap(t, 0, -1), "values are defined before they are used"),
    "a value of itself": (_use("linear"), "values are defined before they are used"),
    "a node twice": (lambda t: graph(t).nodes.append(graph(t).nodes[0]), "values are defined once"),
    "no nodes": (lambda t: graph(t).nodes.clear(), "outputs are defined"),
    "a text for a tensor": (_argument(0, A.of_string("x")), "arguments fit the operator's schema"),
    "a list for a tensor": (_argument(0, A.of_ints([1, 2])), "arguments fit the operator's schema"),
    "nothing for a tensor": (_argument(0, A.of_none(True)), "arguments fit the operator's schema"),
    "a graph for a tensor": (
        _argument(0, A.of_graph(types.GraphArgument("g", types.Graph([], [], [], {}, {}, {})))),
        "arguments fit the operator's schema",
    ),
    "an operator for a tensor": (
        _argument(0, A.of_operator("torch.ops.aten.add.Tensor")),
        "arguments fit the operator's schema",
    ),
    "a missing argument": (lambda t: call(t, "aten.linear").inputs.pop(0), "required arguments are there"),
    "an argument twice": (
        lambda t: call(t, "aten.linear").inputs.append(call(t, "aten.linear").inputs[0]),
        "each argument once",
    ),
    "no results": (lambda t: call(t, "aten.linear").outputs.clear(), "results fit the operator's schema"),
    "two results": (
        lambda t: call(t, "aten.linear").outputs.append(_tensor("x")),
        "results fit the operator's schema",
    ),
    "a number as a result": (
        lambda t: call(t, "aten.linear").outputs.__setitem__(0, A.of_int(1)),
        "results are values",
    ),
    "an undescribed value": (lambda t: graph(t).tensor_values.pop("linear"), "each value is described"),
    "an input too many": (lambda t: graph(t).inputs.append(_tensor("linear")), "one spec for each input"),
    "an input too few": (lambda t: graph(t).inputs.pop(), "one spec for each input"),
    "a spec too many": (
        lambda t: signature(t).input_specs.append(signature(t).input_specs[0]),
        "one spec for each input",
    ),
    "an output of nowhere": (
        lambda t: graph(t).outputs.__setitem__(0, _tensor("evil")),
        "outputs are defined",
    ),
    "an output too many": (lambda t: graph(t).outputs.append(_tensor("x")), "one spec for each output"),
    "no outputs": (lambda t: graph(t).outputs.clear(), "one spec for each output"),
    "an input under another name": (
        lambda t: setattr(signature(t).input_specs[0].parameter.arg, "name", "x"),
        "specs name their inputs",
    ),
    "two inputs of one weight": (_same_place, "a weight is an input once"),
    "a buffer that is no buffer": (
        lambda t: setattr(signature(t).input_specs[2].buffer, "persistent", False),
        "buffers lie where they belong",
    ),
    "an update of nothing": (
        lambda t: signature(t).output_specs.__setitem__(
            0,
            types.OutputSpec.create(
                buffer_mutation=types.BufferMutationSpec(types.TensorArgument("x"), "evil")
            ),
        ),
        "what is updated exists",
    ),
    "a branch with an operand too many": (
        lambda t: _subgraph(t, lambda g: g.inputs.append(_tensor("y"))),
        "branches take the operands of the call",
    ),
    "a branch without outputs": (
        lambda t: _subgraph(t, lambda g: g.outputs.clear()),
        "branches give the same",
    ),
    "a branch that reads outside": (
        lambda t: _subgraph(t, lambda g: setattr(g.nodes[0].inputs[0], "arg", _tensor("linear"))),
        "a subgraph sees its own values only",
    ),
    "branches of one name": (
        lambda t: [
            setattr(named.arg.as_graph, "name", "same")
            for named in call(t, "cond").inputs
            if named.arg.type == "as_graph"
        ],
        "a name is one graph",
    ),
    "a call without its graph": (
        lambda t: call(t, "cond").inputs.pop(1),
        "higher-order operators have their graphs",
    ),
    "a choice of too much": (
        lambda t: _choice(t).append(copy.deepcopy(_choice(t)[0])),
        "higher-order operators get what they take",
    ),
    "a choice of nothing": (
        lambda t: _choice(t).pop(),
        "higher-order operators get what they take",
    ),
    "a choice by a keyword of nobody": (
        lambda t: (_choice(t), add_keyword(t, "cond", "evil")),
        "higher-order operators get what they take",
    ),
    "a number switched by a tensor": (
        lambda t: setattr(call(t, "cond"), "target", "torch.ops.higher_order.wrap_with_set_grad_enabled"),
        "higher-order operators get what they take",
    ),
    "arithmetic with a tensor": (
        lambda t: (
            graph(t).nodes.append(
                types.Node(
                    target="_operator.floordiv",
                    inputs=[
                        types.NamedArgument("a", _tensor("linear"), types.ArgumentKind.POSITIONAL),
                        types.NamedArgument("b", types.Argument.of_int(2), types.ArgumentKind.POSITIONAL),
                    ],
                    outputs=[types.Argument.of_sym_int(types.SymIntArgument.of_name("evil"))],
                    metadata={},
                    name="evil",
                )
            )
            or graph(t).sym_int_values.update(evil=types.SymInt.of_int(1))
        ),
        "functions over numbers get numbers",
    ),
    "a number in place of a tensor": (
        lambda t: setattr(call(t, "aten.linear").inputs[2], "arg", types.Argument.of_int(1)),
        "arguments are what the operator takes",
    ),
    "a tensor in place of a number": (
        lambda t: setattr(call(t, "aten.gt").inputs[1], "arg", _tensor("x")),
        "arguments are what the operator takes",
    ),
    "a position that is left out": (
        lambda t: setattr(call(t, "aten.linear").inputs[0], "kind", types.ArgumentKind.KEYWORD),
        "arguments are where the operator takes them",
    ),
    "no module calls": (
        lambda t: t.graph_module.module_call_graph.clear(),
        "the program itself is the first call",
    ),
    "module calls without a signature": (
        lambda t: setattr(t.graph_module.module_call_graph[0], "signature", None),
        "the program itself has a signature",
    ),
    "a module's input of nowhere": (
        lambda t: root(t).inputs.append(_tensor("evil")),
        "signatures of modules name values",
    ),
    "an unknown layout": (
        lambda t: setattr(graph(t).tensor_values["linear"], "layout", types.Layout.Unknown),
        "layouts are known",
    ),
    "an unknown dtype": (
        lambda t: setattr(graph(t).tensor_values["linear"], "dtype", types.ScalarType.UNKNOWN),
        "dtypes are known",
    ),
    "a device of no kind": (
        lambda t: setattr(graph(t).tensor_values["x"], "device", types.Device("evil;device", None)),
        "devices are known",
    ),
    "a device beyond all": (
        lambda t: setattr(graph(t).tensor_values["x"], "device", types.Device("cpu", 1 << 40)),
        "indices of devices are small",
    ),
    "a gradient of an integer": (
        lambda t: (
            setattr(graph(t).tensor_values["x"], "dtype", types.ScalarType.LONG),
            setattr(graph(t).tensor_values["x"], "requires_grad", True),
        ),
        "integers have no gradients",
    ),
}


def _pass_on_the_input(found: Tree) -> None:
    """Says of the call of `linear` that it gives back what it gets."""
    leaf, no_keywords = (
        '{"type": null, "context": null, "children_spec": []}',
        '{"type": "builtins.dict", "context": "[]", "children_spec": []}',
    )
    args = f'{{"type": "builtins.tuple", "context": "null", "children_spec": [{leaf}]}}'
    in_spec = (
        f'[1, {{"type": "builtins.tuple", "context": "null", "children_spec": [{args}, {no_keywords}]}}]'
    )
    entry = next(entry for entry in found.graph_module.module_call_graph if entry.fqn == "linear")
    entry.signature = types.ModuleCallSignature([_tensor("x")], [_tensor("x")], in_spec, f"[1, {leaf}]")


def _before_all_else(forward: Callable[[torch.Tensor], Any]) -> Callable[[Tree], None]:
    """Does something with the input first."""

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            forward(x)
            return x

    def change(found: Tree) -> None:
        found.writer = types.Writer(name="evil", version="1", revision=1)
        before = graph(pt2wire.to_tree(torch.export.export(Model(), (torch.ones(4, 3),))))
        graph(found).nodes[:0] = before.nodes
        graph(found).tensor_values.update({**before.tensor_values, "x": graph(found).tensor_values["x"]})

    return change


def _moving(x: torch.Tensor) -> None:
    x.to_sparse()._indices().add_(1 << 40)


def _moving_an_alias(x: torch.Tensor) -> torch.Tensor:
    sparse = x.to_sparse()
    torch.nn.functional.dropout(sparse._indices(), 0.0, False).fill_(1 << 40)
    return sparse.to_dense()


def _clearing(x: torch.Tensor) -> torch.Tensor:
    sparse = x.to_sparse()
    torch.ops.aten._coalesced_(sparse, False)
    return torch.ops.aten.sparse_resize_and_clear_(sparse, [2, 2], 2, 0)  # type: ignore[no-any-return]


def _invoke_both_branches(found: Tree) -> None:
    """Calls both branches of `cond`, one after the other, by one identifier."""
    nodes = graph(found).nodes
    node = call(found, "cond")
    _, first, second, operands = (named.arg for named in node.inputs)
    node.target, node.exact_inputs = "torch.ops.higher_order.invoke_subgraph", None
    other = copy.deepcopy(node)
    other.name, other.outputs[0].as_tensor.name = "other_call", "other"
    graph(found).tensor_values["other"] = graph(found).tensor_values[node.outputs[0].as_tensor.name]
    for each, branch in ((node, first), (other, second)):
        arguments = [branch, A.of_string("same"), A.of_tensor(operands.as_tensors[0])]
        each.inputs = [types.NamedArgument("", argument, _POSITIONAL) for argument in arguments]
    nodes.insert(nodes.index(node), other)


_GRAPHS["a module call that gives back its input"] = (
    _pass_on_the_input,
    "signatures of modules are what the graph does",
)
_GRAPHS["two subgraphs of one identifier"] = _invoke_both_branches, "what is invoked is what is named"
_GRAPHS["moved indices"] = _before_all_else(_moving), "indices of sparse tensors stay as they were checked"
_GRAPHS["moved indices under another name"] = (
    _before_all_else(_moving_an_alias),
    "only operators that are known to leave indices alone are given some",
)
_GRAPHS["a resized sparse tensor"] = (
    _before_all_else(_clearing),
    "only operators that are known to keep sparse tensors sound are given some",
)
for _name, (_change, _proves) in _GRAPHS.items():
    add("graphs", _name, _proves, tree(_change))

# -- symbols ----------------------------------------------------------------------------------------------

_S = "Symbol('s77', positive=True, integer=True)"


def _ranged(least: int | None, most: int | None, name: str = "s77") -> Callable[[Tree], None]:
    return lambda found: found.range_constraints.update(
        {name: types.RangeConstraint(min_val=least, max_val=most)}
    )


def _fraction() -> Callable[[Tree], None]:
    def change(found: Tree) -> None:
        found.writer = types.Writer(name="evil", version="1", revision=1)
        found.range_constraints["s77"] = types.RangeConstraint(2, 64, min_float=1.5)

    return change


def _hinted(**hint: Any) -> Callable[[Tree], None]:
    return lambda found: setattr(sizes(found)[0].as_expr, "hint", types.SymExprHint.create(**hint))


_SYMBOLS: dict[str, tuple[Callable[[Tree], object], str]] = {
    "one symbol with two meanings": (
        lambda t: set_size(t, "Symbol('s77', negative=True, integer=True)"),
        "a symbol means one thing",
    ),
    "assumptions that contradict": (
        lambda t: set_sizes(t, "Symbol('s77', positive=True, negative=True)"),
        "assumptions are consistent",
    ),
    "an odd and even size": (
        lambda t: set_sizes(t, "Symbol('s77', odd=True, even=True, integer=True)"),
        "assumptions are consistent",
    ),
    "an empty range": (_ranged(9, 3), "a range is not empty"),
    "a negative range": (_ranged(-9, -3), "sizes are not negative"),
    "a range from nothing to less": (_ranged(None, -(1 << 62)), "sizes are not negative"),
    "an unbacked symbol of nowhere": (
        lambda t: set_size(t, "Symbol('u0', integer=True)"),
        "unbacked symbols are declared",
    ),
    "a hint of another type": (_hinted(as_float=4.5), "hints have the type of what they hint at"),
    "a hint that is a flag": (_hinted(as_bool=True), "hints have the type of what they hint at"),
    "a negative hint": (_hinted(as_int=-4), "sizes are not negative"),
    "a constant with another hint": (
        lambda t: (set_size(t, "Integer(3)"), _hinted(as_int=5)(t)),
        "a constant is its own hint",
    ),
    "a bool as a size": (
        lambda t: set_size(t, f"Equality({_S}, Integer(3))"),
        "a size is a number",
    ),
    "a size from 1.5 on": (_fraction(), "bounds of sizes are integers"),
    "a size of a symbol for floats": (
        lambda t: (set_sizes(t, "Symbol('zuf0')"), _ranged(2, 64, "zuf0")(t)),
        "bounds of sizes are integers",
    ),
    "a float symbol as a size": (lambda t: set_sizes(t, "Symbol('s77', real=True)"), "a size is an integer"),
    "an irrational size": (
        lambda t: set_sizes(t, "Symbol('s77', irrational=True, positive=True)"),
        "a size is an integer",
    ),
}
for _name, (_change, _proves) in _SYMBOLS.items():
    add("symbols", _name, _proves, tree(_change))


# -- weights ----------------------------------------------------------------------------------------------


def _meta(fqn: str = "linear.weight", **fields: Any) -> Callable[[], bytes]:
    def change(value: Any) -> None:
        value["config"][fqn]["tensor_meta"].update(fields)

    return plain(change, WEIGHTS)


def _payload(fqn: str = "linear.weight", **fields: Any) -> Callable[[], bytes]:
    return plain(lambda value: value["config"][fqn].update(fields), WEIGHTS)


def _ints(*numbers: int) -> list[dict[str, int]]:
    return [{"as_int": number} for number in numbers]


def _both(fqn: str = "linear.weight", payload: dict[str, Any] | None = None, **fields: Any) -> bytes:
    """Graph and payload agree on a lie."""
    config = json.loads(honest_records()[WEIGHTS])
    config["config"][fqn].update(payload or {})
    config["config"][fqn]["tensor_meta"].update(fields)
    found = json.loads(honest_records()[PROGRAM])
    found["graph_module"]["graph"]["tensor_values"][f"p_{fqn.replace('.', '_')}"].update(fields)
    return records({WEIGHTS: json.dumps(config).encode(), PROGRAM: json.dumps(found).encode()})


_BIG = 1 << 62
_W = "data/weights/weight_0"
_WEIGHTS: dict[str, tuple[Callable[[], bytes], str]] = {
    "more elements than bytes": (lambda: _both(sizes=_ints(300, 3)), "tensors stay in their payload"),
    "an offset beyond the end": (_meta(storage_offset={"as_int": 1000}), "tensors stay in their payload"),
    "an offset of 2**62": (_meta(storage_offset={"as_int": _BIG}), "sums do not overflow"),
    "a negative offset": (_meta(storage_offset={"as_int": -1}), "offsets are not negative"),
    "strides beyond the end": (_meta(strides=_ints(1000, 1)), "tensors stay in their payload"),
    "strides of 2**62": (_meta(strides=_ints(_BIG, _BIG)), "products do not overflow"),
    "a negative stride": (_meta(strides=_ints(-3, 1)), "strides are not negative"),
    "too few strides": (_meta(strides=_ints(1)), "one stride for each size"),
    "too many strides": (_meta(strides=_ints(3, 1, 1)), "one stride for each size"),
    "a negative size": (_meta(sizes=_ints(-3, 3)), "sizes are not negative"),
    "sizes of 2**62": (
        lambda: _both(sizes=_ints(_BIG, _BIG), strides=_ints(0, 0)),
        "products do not overflow",
    ),
    "sizes that wrap to nothing": (
        lambda: _both(sizes=_ints(1 << 32, 1 << 32), strides=_ints(0, 0)),
        "products do not overflow",
    ),
    "an expression as a size": (
        _meta(sizes=[{"as_expr": {"expr_str": "Symbol('s77')", "hint": None}}, {"as_int": 3}]),
        "sizes of weights are numbers",
    ),
    "65 dimensions": (
        lambda: _both(sizes=_ints(*[1] * 65), strides=_ints(*[1] * 65)),
        "dimensions are bounded",
    ),
    "an unknown dtype": (_meta(dtype=0), "dtypes are known"),
    "a dtype of no number": (_meta(dtype=9999), "dtypes are known"),
    "another dtype than the graph": (_meta(dtype=8), "payloads are what the graph says"),
    "a wider dtype on both sides": (lambda: _both(dtype=8), "tensors stay in their payload"),
    "two dtypes in one payload": (
        lambda: _both("linear.bias", payload={"path_name": "weight_0"}, dtype=5),
        "what shares a record has its dtype",
    ),
    "another size than the graph": (_meta(sizes=_ints(9, 1)), "payloads are what the graph says"),
    "a sparse layout": (_meta(layout=1), "weights are strided"),
    "no layout": (_meta(layout=0), "weights are strided"),
    "a device of no kind": (_meta(device={"type": "evil", "index": None}), "devices are known"),
    "a device as code": (_meta(device={"type": "cpu'+x", "index": None}), "devices are known"),
    "a device beyond all": (_meta(device={"type": "cpu", "index": 1 << 40}), "indices of devices are small"),
    "a gradient of a flag": (lambda: _both(dtype=12, requires_grad=True), "flags have no gradients"),
    "a buffer for a parameter": (_payload(is_param=False), "parameters are parameters"),
    "no metadata": (_payload(tensor_meta=None), "payloads are described"),
    "an empty payload": (lambda: records({_W: b""}), "an empty payload is no weight"),
    "a payload cut short": (lambda: records({_W: b"\0" * 35}), "tensors stay in their payload"),
    "a weight too few": (
        plain(lambda v: v["config"].pop("linear.weight"), WEIGHTS),
        "each weight has a payload",
    ),
    "a weight that is absent": (_payload(absent=True), "saved without its bytes"),
    "a weight that is an alias of nothing": (_payload(alias_of="evil"), "aliases exist"),
    "a weight that is an alias of itself": (_payload(alias_of="linear.weight"), "aliases are others"),
    "a weight of a class": (
        _payload(subclass={"class_name": "os.system", "inner": {}}),
        "classes are not looked up",
    ),
}
for _name, (_make, _proves) in _WEIGHTS.items():
    add("weights", _name, _proves, _make)
add(
    "weights",
    "a weight that nobody names",
    "what no input names stays unused",
    plain(lambda v: v["config"].update(evil=v["config"]["linear.bias"]), WEIGHTS),
    refused=False,
)
add(
    "symbols",
    "an unbacked symbol that nothing makes",
    "a size that is said to be unknown is computed",
    tree(lambda t: (set_size(t, "Symbol('u0', integer=True)"), _ranged(0, 10, "u0")(t))),
    refused=False,
)
