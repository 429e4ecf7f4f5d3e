"""Calls that a compiled library hands back: built from Inductor's kernels, read and written as documents."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pt2wire
import pytest
import torch
import torch._inductor.extern_node_serializer as torch_serializer
from pt2wire import DeserializeError, SerializeError
from pt2wire.generated import types
from torch._inductor import ir
from torch.export import Dim

from .helpers.objects import foo

_LIBRARY = torch.library.Library("wirekernels", "FRAGMENT")
_LIBRARY.define("scaled(Tensor x, SymInt n) -> Tensor")
_LIBRARY.define("listed(Tensor x) -> Tensor[]")
_LIBRARY.define("paired(Tensor x) -> (Tensor, Tensor)")
_LIBRARY.define(
    "much(Tensor x, int n, float f, SymInt[] sizes, Tensor? a, Tensor? b, Tensor[] many, Tensor?[] maybe, "
    "int[] empty, *, str mode='a', bool flag=False, ScalarType dtype=6, Device? device=None, Scalar s=1, "
    "MemoryFormat? format=None) -> Tensor"
)


def _implement(name: str, count: int | None) -> None:
    def run(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return x + 1 if count is None else [x + number for number in range(count)]

    def fake(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return torch.empty_like(x) if count is None else [torch.empty_like(x) for _ in range(count)]

    _LIBRARY.impl(name, run, "CPU")
    torch.library.register_fake(f"wirekernels::{name}", fake, lib=_LIBRARY)


for _name, _count in {"scaled": None, "listed": 2, "much": None}.items():
    _implement(_name, _count)


@torch.library.impl("wirekernels::paired", "CPU", lib=_LIBRARY)
def _paired(x: torch.Tensor) -> Any:
    return x + 1, x + 2


@torch.library.register_fake("wirekernels::paired", lib=_LIBRARY)
def _fake_paired(x: torch.Tensor) -> Any:
    return torch.empty_like(x), torch.empty_like(x)


@torch.library.custom_op("wirekernels::python", mutates_args=())
def python_op(x: torch.Tensor) -> torch.Tensor:
    return x * 2


python_op.register_fake(torch.empty_like)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.foo = foo(10, 20)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        ops = torch.ops.wirekernels
        first = ops.scaled(x.sin(), x.size(0))
        _, second = ops.listed(first + 1)
        third, fourth = ops.paired(second)
        much = ops.much(
            x,
            3,
            float("inf"),
            [1, x.size(0)],
            None,
            y,
            [x, y],
            [x, None],
            [],
            mode="q",
            flag=True,
            dtype=torch.float64,
            device=torch.device("cpu"),
            s=2.5,
            format=torch.channels_last,
        )
        return ops.scaled(y, 3), third, fourth, much, ops.python(x), self.foo.add_tensor(y)


class _Enough(Exception):
    """Stops the compiler before it calls that of C++."""


def _compiled(monkeypatch: pytest.MonkeyPatch) -> tuple[types.ExternKernelNodes, str]:
    """What we and what PyTorch write of the kernels of the model."""
    ours = types.ExternKernelNodes([])
    theirs: list[str] = []
    export, serialize = (
        ir.FallbackKernel.export_extern_kernel_node,
        torch_serializer.extern_node_json_serializer,
    )

    def exported(kernel: ir.FallbackKernel) -> Any:
        ours.nodes += pt2wire.export_extern_kernels([kernel]).nodes
        return export(kernel)

    def serialized(kernels: Any) -> str:
        theirs.append(serialize(kernels))
        assert pt2wire.export_extern_kernels(kernels) == ours, "what Inductor says of them itself"
        raise _Enough

    monkeypatch.setattr(ir.FallbackKernel, "export_extern_kernel_node", exported)
    monkeypatch.setattr(torch_serializer, "extern_node_json_serializer", serialized)
    rows = Dim("rows", min=2)
    inputs = torch.ones(4, 3, 2, 2), torch.ones(4, 3, 2, 2)
    ep = torch.export.export(Model(), inputs, dynamic_shapes=({0: rows}, {0: rows}))
    with pytest.raises(Exception, match="_Enough"):
        torch._inductor.aoti_compile_and_package(ep)
    return ours, theirs[0]


def test_kernels_are_written_as_inductor_writes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = _compiled(monkeypatch)
    assert json.loads(pt2wire.to_json(ours)) == json.loads(theirs)
    targets = [kernel.node.target for kernel in ours.nodes]
    assert sorted({target.rpartition("::")[2] for target in targets}) == [
        "call_torchbind",
        "listed",
        "much",
        "paired",
        "python",
        "scaled",
    ]
    # And come back, from PyTorch's text as from ours.
    assert pt2wire.from_json(theirs, types.ExternKernelNodes) == ours
    assert pt2wire.from_thrift(pt2wire.to_thrift(ours), types.ExternKernelNodes) == ours


def _kernel(**changes: Any) -> Any:
    kernel = {
        "get_name": lambda: "buf0",
        "op_overload": torch.ops.aten.relu.default,
        "inputs": [],
        "constant_args": [],
        "unflatten_args": lambda inputs, constants: ([1], {}),
        "fill_non_provided_args": lambda args, kwargs: args,
        "outputs": [SimpleNamespace(get_name=lambda: "buf1")],
        "mutation_outputs": [],
    }
    return SimpleNamespace(**kernel | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"op_overload": torch.ops.higher_order.cond},
            "expected a kernel that calls an operator or a method of a script object, found a call",
        ),
        ({"op_overload": torch.ops.aten.item.default}, "expected a result of Tensor, .*, found number"),
        ({"unflatten_args": lambda *_: ([object()], {})}, "expected an argument that the format can hold"),
        ({"unflatten_args": lambda *_: ([[1, "a"]], {})}, "expected arguments that the format can hold"),
        ({"unflatten_args": lambda *_: ([1, 2], {})}, r"expected arguments of aten::relu\("),
    ],
)
def test_kernels_beyond_the_format_are_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SerializeError, match=f"^buf0: {message}"):
        pt2wire.export_extern_kernels([_kernel(**changes)])


def test_documents_are_read_strictly() -> None:
    kind = types.ExternKernelNodes
    kernels = pt2wire.export_extern_kernels([_kernel()])
    text = pt2wire.to_json(kernels).decode()
    with pytest.raises(DeserializeError, match=r"kernels:nodes\[0\]\.node: expected .*'target'"):
        pt2wire.from_json(text.replace('"target"', '"objective"'), kind)
    with pytest.raises(DeserializeError, match=r"^kernels"):
        pt2wire.from_thrift(pt2wire.to_thrift(kernels)[:-1], kind)
    newer = text.replace('"target"', '"of_later":1,"target"')
    with pytest.warns(UserWarning, match=r"dropped .*of_later"):
        assert pt2wire.from_json(newer, kind) == kernels
    dropped: list[str] = []
    pt2wire.from_json(newer, kind, unknown=dropped)
    assert len(dropped) == 1 and "of_later" in dropped[0]
    with pytest.raises(DeserializeError, match="Raise `document_bytes`"):
        pt2wire.from_json(text, kind, limits=pt2wire.Limits(document_bytes=10))
    for read in (pt2wire.from_json, pt2wire.from_thrift):
        with pytest.raises(TypeError, match="expected ExportedProgram or ExternKernelNodes as kind"):
            read(b"", types.Node)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="expected a tree"):
        pt2wire.to_json(types.SchemaVersion(8, 20))  # type: ignore[arg-type]
