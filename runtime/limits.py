"""Bounds on what an archive may ask for. Generous for honest programs; a caller can raise them.

What bounds the parsing of one kind of text (expressions, guards, tree specs, names) stands beside its parser.
"""

from __future__ import annotations

from dataclasses import dataclass

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What reading an artifact may cost at most.

    Attributes:
        archive_entries: Records in one archive.
        record_name_length: Characters in the name of a record.
        inflated_bytes: Bytes that one deflated record may grow to.
        inflation_ratio: How often a deflated record may exceed its compressed size, once it is larger than
            `inflation_floor` bytes. Records of zeros honestly reach 1,000; JSON of programs stays below 60.
        inflation_floor: See `inflation_ratio`.
        streamed_bytes: Bytes of an archive that is read to memory, because it is neither a regular file nor
            a BytesIO.
        tensor_dimensions: Dimensions of one tensor. PyTorch computes with no more than 64.

    Example:
        >>> import io, pt2wire, torch
        >>> file = io.BytesIO()
        >>> pt2wire.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), file)
        >>> list(pt2wire.read(file, limits=Limits(archive_entries=1_000_000)).programs)
        ['model']
    """

    archive_entries: int = 300_000
    record_name_length: int = 1024
    inflated_bytes: int = 4 * GIB
    inflation_ratio: int = 200
    inflation_floor: int = 64 * MIB
    streamed_bytes: int = 64 * GIB
    tensor_dimensions: int = 64


DEFAULT_LIMITS = Limits()
