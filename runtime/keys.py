"""Keys of dictionaries, looked at before a dictionary is made of them.

Whoever writes a file can choose numbers and tuples that all have one hash, and then a dictionary of them
takes as long as the square of their number. Hashes of texts are others in each process.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable

from .limits import INT64_MAX

#: How many keys of one dictionary may be tuples, integers beyond 64 bits or the like. Of smaller integers,
#: and of floats, only a few share a hash: of these there may be any number.
MAX_COMPOUND_KEYS = 256


def keys_problem(keys: Collection[Hashable]) -> str | None:
    """What keeps these from being the keys of a dictionary, or None.

    Example:
        >>> keys_problem(["a", 1, (2, 3)])
        >>> keys_problem([1, 1.0])
        'expected different keys, found one twice'
        >>> keys_problem([(number,) for number in range(300)])
        'expected at most 256 keys that are tuples, long integers or the like, found 300'
    """
    compound = sum(not is_plain(key) for key in keys)
    if compound > MAX_COMPOUND_KEYS:
        return f"{TOO_MANY}, found {compound}"
    return "expected different keys, found one twice" if len(set(keys)) != len(keys) else None


def is_plain(key: object) -> bool:
    """Whether few other keys can be made to have the hash of this one."""
    if isinstance(key, int):
        return -INT64_MAX - 1 <= key <= INT64_MAX
    return isinstance(key, str | float | None)


TOO_MANY = f"expected at most {MAX_COMPOUND_KEYS} keys that are tuples, long integers or the like"
