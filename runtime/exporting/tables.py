"""Tables keyed by type: rows instead of chains of isinstance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

Row = TypeVar("Row")


class TypeTable(dict[type, Row]):
    """A table in which a type without a row of its own takes that of its nearest base.

    Args:
        rows: The row of each type.
        exact: Types whose row is not for subclasses, such as int, of which enum members are instances too.

    Example:
        >>> table = TypeTable({int: "number", dict: "mapping"}, exact=[int])
        >>> from collections import OrderedDict
        >>> table[OrderedDict], bool in table
        ('mapping', False)
    """

    def __init__(self, rows: Mapping[type, Row], *, exact: Iterable[type] = ()) -> None:
        super().__init__(rows)
        # Apart from the rows that lookups add: else `int`, met first, would be a base of enum members.
        self._bases = {kind: row for kind, row in rows.items() if kind not in frozenset(exact)}

    def __missing__(self, kind: type) -> Row:
        for base in kind.__mro__[1:]:
            if base in self._bases:
                row = self[kind] = self._bases[base]
                return row
        raise KeyError(kind)
