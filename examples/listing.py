"""A plain listing of an archive's programs: nodes and weights, line by line. Needs no torch.

examples/cpp/inspect.cpp prints the same lines from the same file, so that the two can be compared:

    python examples/listing.py model.pt2
    build/inspect model.pt2
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator, Mapping

import pt2wire
from pt2wire.archive.payloads import Payload
from pt2wire.generated import types


def listing(name: str, program: types.ExportedProgram, weights: Mapping[str, Payload]) -> list[str]:
    """The lines for one program.

    Args:
        name: What the archive calls it.
        program: Its tree.
        weights: Its weights by fully qualified name, as `pt2wire.read(f).weights[name]`.
    """
    version = program.schema_version
    module = program.graph_module
    lines = [f"program {_text(name)}", f"version {version.major}.{version.minor}"]
    lines.append(f"torch {_text(program.torch_version)}")
    for symbol, limits in program.range_constraints.items():
        lines.append(f"symbol {_text(symbol)} {_number(limits.min_val)} {_number(limits.max_val)}")
    for input_spec in module.signature.input_specs:
        lines.append(f"input {input_spec.type}{_target(input_spec)}")
    for output_spec in module.signature.output_specs:
        lines.append(f"output {output_spec.type}")
    lines += _graph(module.graph, "")
    lines += [_weight(fqn, payload) for fqn, payload in weights.items()]
    return lines


def _graph(graph: types.Graph, indent: str) -> Iterator[str]:
    for node in graph.nodes:
        name = "-" if node.name is None else _text(node.name)
        counts = f"inputs={len(node.inputs)} outputs={len(node.outputs)}"
        yield f"{indent}node {name} {_text(node.target)} {counts}"
        for output in node.outputs:
            yield from _output(graph, output, indent + "  ")
        for argument in node.inputs:
            if argument.arg.type == "as_graph":
                subgraph = argument.arg.as_graph
                yield f"{indent}  graph {_text(argument.name)} {_text(subgraph.name)}"
                yield from _graph(subgraph.graph, indent + "    ")


def _output(graph: types.Graph, output: types.Argument, indent: str) -> Iterator[str]:
    match output.type:
        case "as_tensor":
            yield _tensor(graph, output.as_tensor.name, indent)
        case "as_tensors":
            yield from (_tensor(graph, tensor.name, indent) for tensor in output.as_tensors)
        case "as_sym_int" if output.as_sym_int.type == "as_name":
            name = output.as_sym_int.as_name
            yield f"{indent}int {_text(name)} = {_symbolic(graph.sym_int_values.get(name))}"
        case "as_sym_bool" if output.as_sym_bool.type == "as_name":
            name = output.as_sym_bool.as_name
            yield f"{indent}bool {_text(name)} = {_symbolic(graph.sym_bool_values.get(name))}"
        case "as_sym_float" if output.as_sym_float.type == "as_name":
            name = output.as_sym_float.as_name
            yield f"{indent}float {_text(name)} = {_symbolic(graph.sym_float_values.get(name))}"
        case kind:
            yield f"{indent}{kind}"


def _tensor(graph: types.Graph, name: str, indent: str) -> str:
    meta = graph.tensor_values.get(name)
    return f"{indent}tensor {_text(name)} {'?' if meta is None else _meta(meta)}"


def _meta(meta: types.TensorMeta) -> str:
    dtype = types.TORCH_NAMES[types.ScalarType].get(meta.dtype, "?")
    device = _text(meta.device.type) + ("" if meta.device.index is None else f":{meta.device.index}")
    sizes = ", ".join(map(_symbolic, meta.sizes))
    strides = ", ".join(map(_symbolic, meta.strides))
    return f"{dtype} sizes=[{sizes}] strides=[{strides}] offset={_symbolic(meta.storage_offset)} {device}"


def _weight(fqn: str, payload: Payload) -> str:
    kind = "parameter" if payload.meta.is_param else "buffer"
    meta = payload.meta.tensor_meta
    described = "?" if meta is None else _meta(meta)
    content = f"bytes={len(payload.data)} crc32={zlib.crc32(payload.data):08x}"
    return f"weight {_text(fqn)} {kind} {described} {content}"


def _target(spec: types.InputSpec) -> str:
    """What a lifted input stands for: the name of a parameter, buffer or constant."""
    match spec.type:
        case "parameter":
            return f" {_text(spec.parameter.parameter_name)}"
        case "buffer":
            return f" {_text(spec.buffer.buffer_name)}"
        case "tensor_constant":
            return f" {_text(spec.tensor_constant.tensor_constant_name)}"
        case _:
            return ""


def _symbolic(value: types.SymInt | types.SymBool | types.SymFloat | None) -> str:
    if value is None:
        return "?"
    if value.type == "as_expr":
        return _text(value.as_expr.expr_str)
    if isinstance(value, types.SymInt):
        return str(value.as_int)
    if isinstance(value, types.SymBool):
        return str(value.as_bool).lower()
    return value.as_float.hex()  # all bits, in a form that C++ prints too


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _text(text: str) -> str:
    """Text as it is, but for bytes that are not printable ASCII."""
    return "".join(chr(b) if 0x20 <= b < 0x7F and b != 0x5C else f"\\x{b:02x}" for b in text.encode())


def main() -> None:
    """Prints the listing of the archive that the command line names."""
    archive = pt2wire.read(sys.argv[1])
    for name, program in archive.programs.items():
        print("\n".join(listing(name, program, archive.weights[name])))


if __name__ == "__main__":
    main()
