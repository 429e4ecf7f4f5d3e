"""Bounds on what a file may ask for. Generous for honest programs; a caller can raise them.

They bound memory and time, so that a small file cannot exhaust either. What a rule of the format bounds
instead stands with the rule: the length of a name in `names.py`, the depth of a document in the codecs.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

#: What sizes, strides, offsets and numbers of bytes may be at most, in PyTorch and in files.
INT64_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Limits:
    """What reading an artifact may cost at most. Shown, it names what is not as by default.

    Attributes:
        archive_entries: Records in one archive.
        record_name_length: Characters in the name of a record.
        inflated_bytes: Bytes that one deflated record may grow to.
        inflation_ratio: How often deflated records, each and all together, may exceed their compressed size,
            once they are larger than `inflation_floor` bytes. Records of zeros honestly reach 1,000; JSON of
            programs stays below 60.
        inflation_floor: See `inflation_ratio`.
        streamed_bytes: Bytes of an archive that is read to memory, because it is neither a regular file nor
            a BytesIO.
        document_bytes: Bytes of one document: a program or a payload config in one form. Of JSON, 1,000 nodes
            take 1 to 2 MB.
        document_objects: Objects in one document, counted by what begins or ends each: brackets in JSON, zero
            bytes in Thrift. 1,000 nodes have 20,000 to 80,000, and one object may take 300 bytes of memory.
        nested_graphs: Nesting of subgraphs, of dictionaries and of containers in arguments.
        nested_sources: Nesting of what says where a node came from; each pass over a graph adds one.
        tensor_dimensions: Dimensions of one tensor. PyTorch computes with no more than 64.
        expression_length: Characters of one symbolic expression.
        expression_terms: Symbols, numbers and functions in one expression.
        expression_depth: Nesting of functions in one expression.
        nested_divisions: Nesting of quotients and remainders in one expression; each more doubles what
            PyTorch takes to find its range. Layers that shrink an image nest as many as there are.
        program_terms: Terms of all distinct expressions of a program together.
        expanded_terms: Terms of the polynomial that an expression would be if it were expanded.
        integer_bits: Bits of an integer in an expression or guard.
        value_bits: Bits of what an expression can amount to, for symbols below 2**64.
        float_precision: Bits of precision of a float in an expression.
        exponent: The exponent of a power, in expressions and guards.
        range_name_length: Characters of the name of a range: a symbol, or an expression as sympy prints it.
        guards: Guards of a program; a thousand take `torch.compile` two seconds.
        guards_length: Characters of all guards together.
        guard_divisions: Quotients and remainders in all guards together: PyTorch traces each again, in
            milliseconds, when a pass makes another program of one.
        guard_length: Characters of one guard.
        guard_depth: Nesting of operations in one guard.
        guard_searches: Characters of all guards, times inputs: PyTorch looks for each input in each guard.
        treespec_length: Characters of one tree spec.
        treespec_nodes: Containers and leaves of one tree spec.
        treespec_depth: Nesting of containers in one tree spec.

    Raises:
        TypeError: A limit is no whole number.
        ValueError: One is below 0.

    Example:
        >>> import io, pt2wire, torch
        >>> file = io.BytesIO()
        >>> pt2wire.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), file)
        >>> list(pt2wire.read(file, limits=Limits(archive_entries=1_000_000)).programs)
        ['model']
        >>> Limits(guards=10_000)
        Limits(guards=10000)
    """

    archive_entries: int = 300_000
    record_name_length: int = 1024
    inflated_bytes: int = 4 * GIB
    inflation_ratio: int = 200
    inflation_floor: int = 16 * MIB
    streamed_bytes: int = 64 * GIB
    document_bytes: int = 256 * MIB
    document_objects: int = 8_000_000
    nested_graphs: int = 32
    nested_sources: int = 128
    tensor_dimensions: int = 64
    expression_length: int = 65_536
    expression_terms: int = 4_096
    expression_depth: int = 100
    nested_divisions: int = 10
    program_terms: int = 100_000
    expanded_terms: int = 4_096
    integer_bits: int = 128
    value_bits: int = 4_096
    float_precision: int = 1_024
    exponent: int = 64
    range_name_length: int = 4_096
    guards: int = 4_096
    guards_length: int = 1 << 19
    guard_divisions: int = 4_096
    guard_length: int = 65_536
    guard_depth: int = 100
    guard_searches: int = 1 << 28
    treespec_length: int = 16 * MIB
    treespec_nodes: int = 1 << 20
    treespec_depth: int = 100

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"expected {limit.name} as a whole number, found {value!r:.80}")
            if value < 0:
                raise ValueError(f"expected {limit.name} of 0 or more, found {value}")

    def __repr__(self) -> str:
        # In full, it would be most of what `help` says of each function that takes limits.
        limits = ((limit, getattr(self, limit.name)) for limit in fields(self))
        changed = (f"{limit.name}={value}" for limit, value in limits if value != limit.default)
        return f"{type(self).__name__}({', '.join(changed)})"


DEFAULT_LIMITS = Limits()


def inflates_much(size: int, packed: int, limits: Limits) -> bool:
    """Whether bytes hold so much more than they take that they may be made to exhaust memory.

    Example:
        >>> inflates_much(1 << 30, 1 << 20, DEFAULT_LIMITS), inflates_much(1 << 20, 1 << 10, DEFAULT_LIMITS)
        (True, False)
    """
    return size > limits.inflation_floor and size > limits.inflation_ratio * packed


def raising(*limits: str) -> str:
    """The hint for whoever runs into a limit, or one of several, with a file of their own.

    Example:
        >>> raising("guard_depth")
        'Raise `guard_depth` in the limits if the file is yours'
    """
    return f"Raise {' or '.join(f'`{limit}`' for limit in limits)} in the limits if the file is yours"
