"""Example inputs -> the records that hold them; mirror of `importing.example_inputs`.

PyTorch keeps them as one pickle. Plain tensors, numbers and containers can be read back from it without
running code. Classes cannot: then the leaves of the inputs are stored a second time, as a plain list, and
their structure comes from the program's own description of its inputs.
"""

from __future__ import annotations

import enum
import io
import pickle
import warnings
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from ..generated.types import TORCH_NAMES, ExtraScalarType
from ..warning import warn_user

#: The only one of which torch.load(weights_only=True) reads everything.
DEFAULT_PICKLE_PROTOCOL = 2


def export_example_inputs(
    example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None, pickle_protocol: int
) -> tuple[bytes, bytes | None]:
    """Pickle a program's example inputs.

    Args:
        example_inputs: Positional and keyword arguments, or None.
        pickle_protocol: For the record that PyTorch reads.

    Returns:
        The record that PyTorch reads, empty without inputs or where they cannot be pickled (PyTorch then
        loads the program without them); and the leaves, where that record cannot be opened without running
        code.

    Raises:
        ValueError: There is no such pickle protocol.
    """
    check_protocol(pickle_protocol)
    if example_inputs is None:
        return b"", None
    try:
        sample = pickled(example_inputs, pickle_protocol)
    except Exception as error:  # whatever the inputs' classes raise
        sample = b""
        warn_user(
            f"the example inputs cannot be pickled ({type(error).__name__}: {error}): torch.export.load will "
            "load the program without them"
        )
    if sample and opens_safely(sample):
        return sample, None
    leaves = [_plain(leaf) for leaf in pytree.tree_leaves(example_inputs)]
    try:
        flat = pickled(leaves, DEFAULT_PICKLE_PROTOCOL)
    except Exception:  # the same; what is missing is rebuilt from the program when it is loaded
        return sample, None
    return sample, flat if opens_safely(flat) else None


def check_protocol(pickle_protocol: object) -> None:
    """Refuse what torch.save could not write with.

    Raises:
        ValueError: There is no such pickle protocol.
    """
    if pickle_protocol not in range(2, pickle.HIGHEST_PROTOCOL + 1):
        raise ValueError(
            f"expected a pickle protocol from 2 to {pickle.HIGHEST_PROTOCOL}, found {pickle_protocol!r:.80}"
        )


def pickled(value: object, pickle_protocol: int) -> bytes:
    """A value as torch.save writes it, fake tensors as torch.export.save writes them."""
    if any(isinstance(leaf, FakeTensor) for leaf in pytree.tree_leaves(value)):
        from torch._export.serde.serialize import serialize_torch_artifact

        written: bytes = serialize_torch_artifact(value, pickle_protocol)
        return written
    buffer = io.BytesIO()
    torch.save(value, buffer, pickle_protocol=pickle_protocol)
    return buffer.getvalue()


def opens_safely(data: bytes) -> bool:
    """Whether a pickle can be opened without running code."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.load(io.BytesIO(data), weights_only=True)
    except Exception:  # it is a question
        return False
    return True


def _plain(leaf: object) -> object:
    """What can be stored for a leaf: a fake tensor on the meta device, the bytes of an odd dtype.

    A member of an enum stands in the signature: nothing is stored here.
    """
    if isinstance(leaf, enum.Enum):
        return None
    if isinstance(leaf, FakeTensor) and all(isinstance(size, int) for size in (*leaf.shape, *leaf.stride())):
        return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="meta")
    if isinstance(leaf, torch.Tensor) and leaf.dtype in _NOT_PICKLED:
        return leaf.view(torch.uint8)
    return leaf


#: Dtypes that torch.save does not know. An element is one byte, and the program says what it is.
_NOT_PICKLED = frozenset(
    getattr(torch, name) for name in TORCH_NAMES[ExtraScalarType].values() if "int" in name
)
