"""A `ShapeEnv` that learns what it is seldom asked for only then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy
from torch.fx.experimental.symbolic_shapes import ShapeEnv

_POSTPONED = ("guards", "axioms", "var_to_sources")


class LazyShapeEnv(ShapeEnv):
    """A `ShapeEnv` that learns the guards of its program when PyTorch first asks for what they say.

    Most programs are loaded to be run, and sympy takes a millisecond to build a guard.
    """

    _learn: Callable[[], None] | None = None
    _is_reading = True

    def learn_later(self, learn: Callable[[], None]) -> None:
        """Have `learn` called once, before the first use of guards, axioms or sources of symbols.

        The program has been read then.
        """
        self._is_reading = False
        self._learn = learn
        self._known = {name: vars(self).pop(name) for name in _POSTPONED}

    def _maybe_guard_rel(self, expr: sympy.Expr) -> None:  # type: ignore[override]  # torch's is cached
        # The expressions and ranges of a program have what tracing found in its asserts. By its end more was
        # known of the symbols, so that here more would be found, and other values than were written.
        if not self._is_reading:
            super()._maybe_guard_rel(expr)

    def __getattr__(self, name: str) -> Any:
        # Only ever called for an attribute that is missing.
        if self._learn is None or name not in _POSTPONED:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        learn, self._learn = self._learn, None
        vars(self).update(self._known)
        try:
            learn()
        except BaseException:
            self.learn_later(learn)  # so that the next to ask hears of it too
            raise
        return vars(self)[name]

    def __getstate__(self) -> dict[str, Any]:
        self.guards  # noqa: B018  # a copy knows all
        return vars(self)
