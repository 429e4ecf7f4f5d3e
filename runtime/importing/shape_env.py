"""A `ShapeEnv` that learns what it is seldom asked for only then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.fx.experimental.symbolic_shapes import ShapeEnv

_POSTPONED = ("guards", "axioms", "var_to_sources")


class LazyShapeEnv(ShapeEnv):
    """A `ShapeEnv` that learns the guards of its program when PyTorch first asks for what they say.

    Most programs are loaded to be run, and sympy takes a millisecond to build a guard.
    """

    _learn: Callable[[], None] | None = None

    def learn_later(self, learn: Callable[[], None]) -> None:
        """Have `learn` called once, before the first use of guards, axioms or sources of symbols."""
        self._learn = learn
        self._known = {name: vars(self).pop(name) for name in _POSTPONED}

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
