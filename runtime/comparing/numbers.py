"""How far the numbers of two weights lie apart. Asks torch where that is installed, and else says nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..archive.payloads import Payload
from ..errors import DeserializeError
from ..generated.types import Device


def apart(one: Payload, two: Payload) -> str | None:
    """How many elements of two weights differ in their bits, and by how much at most.

    Args:
        one: A weight of some dtype and shape.
        two: Another one.

    Returns:
        None where that cannot be told: without torch, of other kinds of weights, of damaged ones, and where
        only bytes differ that are no elements.

    Example:
        >>> import io, pt2wire, torch
        >>> file = io.BytesIO()
        >>> pt2wire.save(torch.export.export(torch.nn.Linear(2, 2), (torch.ones(3, 2),)), file)
        >>> one, two = (pt2wire.read(file).weights["model"]["bias"] for _ in range(2))
        >>> one.data.cast("f")[0], two.data.cast("f")[0] = 1.0, 1.5
        >>> apart(one, two)
        '1 of 2 elements, by at most 0.5'
    """
    alike = one.meta.tensor_meta is not None and one.meta.tensor_meta == two.meta.tensor_meta
    plain = not (one.meta.use_pickle or two.meta.use_pickle or one.inner or two.inner)
    if not alike or not plain:
        return None
    try:
        left, right = _elements(one), _elements(two)
    except (ModuleNotFoundError, DeserializeError):  # the digests still say that they differ
        return None
    differ = (_bits(left) != _bits(right)).any(1)
    if not differ.any():
        return None
    wide = _wide(left.dtype)
    most = (left[differ].to(wide) - right[differ].to(wide)).abs().max().item()
    return f"{int(differ.sum()):,} of {len(differ):,} elements, by at most {most:.6g}"


def _elements(payload: Payload) -> Any:
    """The elements in a row, on the CPU wherever the weight belongs."""
    from ..importing.payloads import PayloadStorages, import_weights  # needs torch

    meta = payload.meta
    assert meta.tensor_meta is not None
    tensor_meta = replace(
        meta.tensor_meta, device=Device("cpu"), requires_grad=False, subclass=None, context=None
    )
    plain = Payload(replace(meta, tensor_meta=tensor_meta, is_param=False, alias_of=None), payload.data)
    return import_weights({"weight": plain}, PayloadStorages(), "weights")["weight"].reshape(-1)


def _bits(elements: Any) -> Any:
    import torch

    return elements.resolve_conj().resolve_neg().contiguous().view(torch.uint8).reshape(len(elements), -1)


def _wide(dtype: Any) -> Any:
    import torch

    return torch.complex128 if dtype.is_complex else torch.float64
