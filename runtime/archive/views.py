"""Views of memory in pickles and deep copies, which take their bytes along: one view stays one."""

from __future__ import annotations

import weakref


class Carried:
    """Stands for a view while it is pickled or copied, and becomes a view of a copy of its bytes.

    Pickling and copying ask by identity whether they have met an object. So there is one of these for a view
    as long as it is in use, and weights that share memory share it in the copy as well.
    """

    def __init__(self, view: memoryview) -> None:
        self._view = view

    def __reduce__(self) -> tuple[object, ...]:
        return _view_of, (bytes(self._view),)


_IN_USE: weakref.WeakValueDictionary[int, Carried] = weakref.WeakValueDictionary()


def carried(data: memoryview) -> Carried | memoryview:
    """What to pickle in place of some bytes: these themselves unless they are a view.

    Example:
        >>> import copy
        >>> one, two = copy.deepcopy([carried(memoryview(b"12"))] * 2)
        >>> bytes(one), one is two
        (b'12', True)
    """
    if not isinstance(data, memoryview):
        return data
    found = _IN_USE.get(id(data))
    if found is None:
        _IN_USE[id(data)] = found = Carried(data)
    return found


def _view_of(data: bytes) -> memoryview:
    return memoryview(bytearray(data))  # writable, as the views of an archive are
