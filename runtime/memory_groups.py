"""Which values of a graph may lie in one memory. Needs no torch."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value", bound=Hashable)


class MemoryGroups(Generic[Value]):
    """Groups of values, each of which lies alone until it is joined to another.

    Example:
        >>> groups = MemoryGroups[str]()
        >>> groups.join("view", "base")
        'base'
        >>> groups.of("view"), groups.of("other")
        ('base', 'other')
    """

    def __init__(self) -> None:
        self._parents: dict[Value, Value] = {}

    def of(self, value: Value) -> Value:
        """The one that stands for all values in a memory."""
        root = value
        while (parent := self._parents.get(root, root)) != root:
            root = parent
        while value != root:  # so that chains stay short
            self._parents[value], value = root, self._parents[value]
        return root

    def join(self, value: Value, other: Value) -> Value:
        """Puts all values in the memory of one into that of another, and gives what stands for both."""
        one, both = self.of(value), self.of(other)
        if one != both:
            self._parents[one] = both
        return both
