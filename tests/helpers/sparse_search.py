"""Tries operators that files may call with sparse tensors: with bad arguments, in child processes.

None may end the process, or leave a sparse tensor whose indices lie outside it; and which results are sparse
is as `sparse_operators.py` has it. `python -m tests.helpers.sparse_search [COUNT]` makes so many tries of
each.
"""

from __future__ import annotations

import itertools
import logging
import mmap
import os
import random
import resource
import signal
import sys
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

import torch
from pt2wire.sparse_operators import CHANGING_SPARSE, MAKING_SPARSE, ON_SPARSE, results_are_sparse
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves

from .operator_calls import overloads

_SHAPES = ((4,), (4, 4), (4, 4), (4, 4), (4, 6), (6, 4), (2, 4, 4), (0, 4), (4, 0), (), (1, 4), (2, 2, 4, 4))
_OTHER_DTYPES = (torch.float64, torch.int64, torch.bool, torch.complex64, torch.float16, torch.uint8)
_INTS = (*range(-2, 6), 0, 0, 1, 1, -1, 100, -100, 1 << 31, 1 << 40, -(1 << 40), 1 << 62)
_LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
_SECONDS = 3


def _twice(dense: Tensor) -> Tensor:
    """With each index twice."""
    once = dense.to_sparse()
    indices, values = (
        torch.cat([part, part], dim) for part, dim in ((once.indices(), 1), (once.values(), 0))
    )
    return torch.sparse_coo_tensor(indices, values, once.shape, check_invariants=True)


_KINDS = (
    *(
        lambda dense: dense,
        lambda dense: dense,
        lambda dense: dense.to_sparse(),
        lambda dense: dense.to_sparse(1),
    ),
    *(_twice, lambda dense: dense.to_sparse_csr(), lambda dense: dense.to_sparse_csc()),
    *(lambda dense: dense.to_sparse_bsr((2, 2)), lambda dense: dense.to_sparse_bsc((2, 1))),
)


def _tensor(chance: random.Random) -> Tensor:
    while True:
        shape, dtype = chance.choice(_SHAPES), chance.choice((*[torch.float32] * 6, *_OTHER_DTYPES))
        dense = torch.randn(shape) * (torch.rand(shape) < chance.choice((0, 0.3, 0.6, 1)))
        try:
            return chance.choice(_KINDS)(dense.to(dtype))
        except (RuntimeError, IndexError):  # not of each shape
            continue


def _made(kind: str, chance: random.Random) -> Any:
    if kind.startswith("Optional["):
        return None if chance.random() < 0.4 else _made(kind[len("Optional[") : -1], chance)
    if kind.startswith("List["):
        return [_made(kind[len("List[") : -1], chance) for _ in range(chance.choice((1, 2, 2, 3)))]
    return {
        "Tensor": lambda: _tensor(chance),
        "int": lambda: chance.choice(_INTS),
        "float": lambda: chance.choice((0.5, 1.0, 0.0)),
        "number": lambda: chance.choice((1, 2.0, True, 0, -3)),
        "bool": lambda: chance.random() < 0.5,
        "ScalarType": lambda: chance.choice((torch.float32, *_OTHER_DTYPES)),
        "Layout": lambda: chance.choice((*_LAYOUTS, torch.strided)),
        "str": lambda: chance.choice(("sum", "trunc", "floor")),
        "Device": lambda: torch.device("cpu"),
        "MemoryFormat": lambda: torch.contiguous_format,
    }.get(kind, lambda: None)()


def tries(name: str, operator: OpOverload, count: int) -> Iterator[dict[str, Any]]:
    """Calls of an operator, the same ones each time."""
    chance = random.Random(zlib.crc32(name.encode()))
    torch.manual_seed(0)
    for _ in range(count):
        yield {
            argument.name: _made(str(argument.real_type), chance)
            for argument in operator._schema.arguments
            if not (argument.has_default_value() and chance.random() < 0.7)
        }


def problem(tensor: Tensor) -> str | None:
    """What is wrong with the indices of a sparse tensor. That they are sorted, `mm` does not see to."""
    try:
        if tensor.layout is torch.sparse_coo:
            parts = tensor._indices(), tensor._values()
            torch._validate_sparse_coo_tensor_args(*parts, tensor.shape, tensor.is_coalesced())  # type: ignore[attr-defined]
        elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
            _check_compressed(tensor, tensor.crow_indices(), tensor.col_indices())
        elif tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
            _check_compressed(tensor, tensor.ccol_indices(), tensor.row_indices())
    except RuntimeError as error:
        return None if "are sorted" in str(error) else str(error)
    return None


def _check_compressed(tensor: Tensor, *indices: Tensor) -> None:
    parts = (*indices, tensor.values(), tensor.shape, tensor.layout)
    torch._validate_sparse_compressed_tensor_args(*parts)  # type: ignore[attr-defined]


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]


def _try(packet: str, operator: OpOverload, arguments: dict[str, Any]) -> str | None:
    """What is wrong with what a call makes or leaves behind."""
    given = _tensors(arguments)
    sparse = [tensor.layout in _LAYOUTS for tensor in given]
    written = [
        tensor.layout in _LAYOUTS
        for argument in operator._schema.arguments
        if argument.alias_info is not None and argument.alias_info.is_write
        for tensor in _tensors(arguments.get(argument.name))
    ]
    if not (any(sparse) or packet in MAKING_SPARSE) or (any(written) and packet not in CHANGING_SPARSE):
        return None  # refused, or of no interest
    made = _tensors(operator(**arguments))
    for tensor in (*made, *given):
        if (found := problem(tensor)) is not None:
            return found
    expected = results_are_sparse(packet, sparse) or packet in MAKING_SPARSE or any(written)
    expected |= arguments.get("layout") in _LAYOUTS
    return None if expected or not any(tensor.layout in _LAYOUTS for tensor in made) else "a sparse result"


def search(name: str, count: int) -> str | None:
    """What an operator does wrong, with the call; None if nothing was found."""
    operator, packet = overloads()[name], name.rpartition(".")[0]
    shared = mmap.mmap(-1, mmap.PAGESIZE)
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        logging.disable()
        warnings.simplefilter("ignore")
        for arguments in tries(name, operator, count):
            shared[:] = _shown("ended by", arguments)
            signal.setitimer(signal.ITIMER_PROF, _SECONDS)
            try:
                found = _try(packet, operator, arguments)
            except Exception:  # refused, as it should be
                continue
            if found is not None:
                shared[:] = _shown(f"{found}, after", arguments)
                os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return bytes(shared).rstrip(b"\0").decode() if status else None


def _shown(what: str, arguments: dict[str, Any]) -> bytes:
    texts = {
        name: f"{value.layout} {tuple(value.shape)} {value.dtype}" if isinstance(value, Tensor) else value
        for name, value in arguments.items()
    }
    text = f"{what} {texts}".encode(errors="replace")
    return text[: mmap.PAGESIZE].ljust(mmap.PAGESIZE, b"\0")


def operators() -> list[str]:
    """All overloads of the table that change no tensor which is given for that alone."""
    return [
        name
        for name, operator in overloads().items()
        if name.rpartition(".")[0].rstrip("_") in ON_SPARSE
        and not any(argument.is_out for argument in operator._schema.arguments)
    ]


def main(count: int) -> None:
    for name in operators():
        if (found := search(name, count)) is not None:
            print(f"{name}: {found}", flush=True)


if __name__ == "__main__":
    main(*map(int, itertools.islice(sys.argv, 1, 2)) or (1000,))
