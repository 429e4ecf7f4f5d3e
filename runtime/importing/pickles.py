"""Why torch did not open a pickle: because opening it would run code, or because it is damaged."""

from __future__ import annotations

import re

# What torch.load(weights_only=True) says of a class or function that it does not know as harmless.
_REFUSED = re.compile(
    r"(?:Unsupported global: GLOBAL|Trying to load unsupported GLOBAL|but got <class|call reduce for"
    r" unrecognized function) '?([\w.]+)"
)
_ENOUGH = 200


def refused_code(error: BaseException) -> str | None:
    """The class or function that a pickle wants to call, if that is why torch refused it.

    Example:
        >>> refused_code(ValueError("Unsupported global: GLOBAL os.system was not an allowed global"))
        'os.system'
    """
    found = _REFUSED.search(str(error))
    return None if found is None else found[1]


def reason(error: BaseException) -> str:
    """What torch said, in one line and without its advice to run the code after all.

    Example:
        >>> reason(EOFError())
        'EOFError'
        >>> reason(ValueError("bad magic number\\nTry this"))
        'ValueError: bad magic number'
    """
    text = str(error).partition("WeightsUnpickler error:")[2] or str(error)
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {line}"[:_ENOUGH] if line else type(error).__name__
