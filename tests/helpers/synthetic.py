"""Programs made by chance, of any size, without exporting anything."""

from __future__ import annotations

from random import Random

from pt2wire.generated import types

_TARGETS = ("aten.add.Tensor", "aten.mul.Tensor", "aten.view.default", "aten.relu.default")


def synthetic_program(size: int, random: Random, *, unused: bool = False) -> types.ExportedProgram:
    """A program of `size` nodes with much that is alike in it; of `unused` nodes the outputs need few."""
    one = types.SymInt.create(as_int=1)
    meta = types.TensorMeta(
        dtype=types.ScalarType.FLOAT,
        sizes=[one],
        requires_grad=False,
        device=types.Device("cpu"),
        strides=[one],
        storage_offset=one,
        layout=types.Layout.Strided,
    )
    inputs = ["x0", "x1"]
    values = list(inputs)
    nodes = []
    for number in range(size):
        recent = values if unused else values[-8:]
        arguments = [random.choice(recent), random.choice(inputs), random.choice(values)][
            : random.randint(1, 3)
        ]
        nodes.append(
            types.Node(
                target=f"torch.ops.{random.choice(_TARGETS)}",
                inputs=[
                    types.NamedArgument(name, _tensor(value), types.ArgumentKind.POSITIONAL)
                    for name, value in zip(("self", "other", "out_like"), arguments, strict=False)
                ],
                outputs=[_tensor(f"v{number}")],
                metadata={"stack_trace": f"line {number}"},
                name=f"v{number}",
            )
        )
        values.append(f"v{number}")
    outputs = values[-2:] if not unused else values[:3]
    return types.ExportedProgram(
        graph_module=types.GraphModule(
            graph=types.Graph(
                inputs=[_tensor(name) for name in inputs],
                outputs=[_tensor(name) for name in outputs],
                nodes=nodes,
                tensor_values=dict.fromkeys(values, meta),
                sym_int_values={},
                sym_bool_values={},
            ),
            signature=types.GraphSignature(
                [types.InputSpec.create(user_input=types.UserInputSpec(_tensor(name))) for name in inputs],
                [
                    types.OutputSpec.create(user_output=types.UserOutputSpec(_tensor(name)))
                    for name in outputs
                ],
            ),
            module_call_graph=[],
        ),
        opset_version={},
        range_constraints={},
        schema_version=types.SchemaVersion(*types.SCHEMA_VERSION),
        verifiers=["ATEN"],
        torch_version="2.13.0",
    )


def _tensor(name: str) -> types.Argument:
    return types.Argument.create(as_tensor=types.TensorArgument(name))


def deep_program(depth: int) -> types.ExportedProgram:
    """A program of subgraphs inside of subgraphs, `depth` of them; Thrift goes twelve deep."""
    tree = synthetic_program(1, Random(0))
    for _ in range(depth):
        inner = tree.graph_module.graph
        tree = synthetic_program(1, Random(0))
        node = tree.graph_module.graph.nodes[0]
        node.target = "torch.ops.higher_order.wrap"
        graph = types.Argument.create(as_graph=types.GraphArgument("inner", inner))
        node.inputs.insert(0, types.NamedArgument("", graph, types.ArgumentKind.POSITIONAL))
    return tree
