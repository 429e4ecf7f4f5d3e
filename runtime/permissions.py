"""What a caller permits a file beyond the default, which is nothing: one object for all of loading."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from .arguments import check_flags, check_limits, check_list
from .limits import DEFAULT_LIMITS, Limits

MissingWeights = Literal["error", "meta"]

_PACKET = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Permissions:
    """What a file may do because its reader trusts its author; made by `permit`.

    Attributes:
        allow_pickle: Open what is pickled, though that can run any code.
        allow_operators: Operators that are refused otherwise, as `namespace.name`.
        types: Classes that the file may name, although nothing here imported or registered them otherwise.
        limits: What the file may cost.
        missing_weights: What to do about weights that were saved without their data: "error", or "meta" for
            stand-ins on the meta device.
        changed_weights: Take weights of other sizes or dtypes than the graph says.
    """

    allow_pickle: bool = False
    allow_operators: frozenset[str] = frozenset()
    types: tuple[type, ...] = ()
    limits: Limits = DEFAULT_LIMITS
    missing_weights: MissingWeights = "error"
    changed_weights: bool = False


#: The hint for whoever meets a pickle in a file of their own.
ALLOW_PICKLE = "Pass allow_pickle=True if you trust the author of the file: opening a pickle can run any code"

#: The hint for whoever meets a weight without data.
MISSING_WEIGHTS = "Save real weights, or pass missing_weights='meta' for stand-ins on the meta device"

#: The hint for whoever meets weights that the graph does not expect, most likely in a program of their own.
CHANGED_WEIGHTS = (
    "If they were changed after torch.export, export ep.module() again, or pass changed_weights=True to take "
    "them as they are"
)

#: What a file may do that nobody vouches for.
NO_PERMISSIONS = Permissions()


def permit(
    *,
    allow_pickle: bool = False,
    allow_operators: Iterable[str] = (),
    types: Iterable[type] = (),
    limits: Limits = DEFAULT_LIMITS,
    missing_weights: MissingWeights = "error",
    changed_weights: bool = False,
) -> Permissions:
    """What a caller permits, from the arguments of `load`.

    Raises:
        TypeError: An argument has the wrong type, or names no operator.
        ValueError: `missing_weights` is another word.

    Example:
        >>> permit(allow_operators=["aten.from_file"]).allow_operators
        frozenset({'aten.from_file'})
        >>> permit(allow_operators=["from_file"])
        Traceback (most recent call last):
        ...
        TypeError: expected operators as namespace.name, such as 'aten.from_file', found 'from_file'
    """
    check_flags(allow_pickle=allow_pickle, changed_weights=changed_weights)
    check_limits(limits)
    operators = check_list(allow_operators, "allow_operators", "operators")
    classes = check_list(types, "types", "classes")
    for name in operators:
        if not (isinstance(name, str) and _PACKET.fullmatch(name)):
            raise TypeError(
                f"expected operators as namespace.name, such as 'aten.from_file', found {name!r:.80}"
            )
    for kind in classes:
        if not isinstance(kind, type):
            raise TypeError(f"expected types as a list of classes, found {kind!r:.80} in it")
    if missing_weights not in ("error", "meta"):
        raise ValueError(f"expected missing_weights 'error' or 'meta', found {missing_weights!r:.80}")
    return Permissions(
        allow_pickle, frozenset(operators), tuple(classes), limits, missing_weights, changed_weights
    )
