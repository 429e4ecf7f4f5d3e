"""The one place where pickles are opened: without running code from them, unless the caller permits it."""

from __future__ import annotations

import enum
import io
import pickle
import re
import warnings
from collections.abc import Callable, Collection, Iterable
from typing import Any

import torch

from ..archive.directory import STORED, ZIP_START, read_directory
from ..errors import DeserializeError, UnsafeArtifactError
from ..permissions import ALLOW_PICKLE
from ..sparse import parts_of
from .devices import Devices
from .plain_pickles import plain_data_problem
from .tracing_marks import RANGE, marks_problem, range_class

# What torch.load(weights_only=True) says of a class or function that it does not know as harmless.
_REFUSED = re.compile(
    r"(?:Unsupported global: GLOBAL|Trying to load unsupported GLOBAL|but got <\w+|call reduce for"
    r" unrecognized function) '?([\w.]+)"
)
_ENOUGH = 200
_RANGE = RANGE.rpartition(" ")[2].encode()


def open_pickle(
    data: bytes | memoryview,
    path: str,
    devices: Devices | torch.device | None = None,
    *,
    allow_pickle: bool,
    known: Iterable[type] = (),
) -> Any:
    """What a pickle of torch.save holds.

    Args:
        data: The pickle.
        path: What it is called in messages.
        devices: Where the tensors in it are to be.
        allow_pickle: Whether it may run code. Without that, only tensors and plain containers are made.
        known: Classes that it may make and call all the same; of enums it may only name the members.

    Raises:
        UnsafeArtifactError: It would run code, and that is not permitted.
        DeserializeError: It is damaged.

    Example:
        >>> file = io.BytesIO()
        >>> torch.save([torch.ones(1), torch.nn.ReLU()], file)
        >>> open_pickle(file.getvalue(), "inputs", allow_pickle=False)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        pt2wire.errors.UnsafeArtifactError: inputs: cannot be opened without running code of torch.nn....
        >>> open_pickle(file.getvalue(), "inputs", allow_pickle=True)
        [tensor([1.]), ReLU()]
    """
    data, known = memoryview(data), list(known)
    is_zip = bytes(data[:2]) == ZIP_START
    pickles = _pickles(data, path) if is_zip else []
    if not (allow_pickle or is_zip):  # of those, torch believes how long storages are
        raise DeserializeError(
            "expected what torch.save writes, found other or damaged bytes (no zip file)", path=path
        )
    permitted: list[Any] = list(map(_permitted, known))
    if not allow_pickle:
        _check_plain(pickles, path, {f"{kind.__module__} {kind.__qualname__}" for kind in known})
        if any(_RANGE in bytes(pickle) for pickle in pickles):
            permitted.append(range_class())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pickle protocols
            # Else torch believes the indices of sparse tensors, and reads wherever they point.
            checking = torch.sparse.check_sparse_tensor_invariants()  # type: ignore[no-untyped-call]
            with torch.serialization.safe_globals(permitted), checking:
                return torch.load(
                    io.BytesIO(data),
                    map_location=devices.locations if isinstance(devices, Devices) else devices,
                    weights_only=not allow_pickle,
                )
    except Exception as error:  # damaged pickles raise anything
        if not allow_pickle and (code := refused_code(error)) is not None:
            raise UnsafeArtifactError(
                f"cannot be opened without running code of {code}", path=path, hint=ALLOW_PICKLE
            ) from error
        raise DeserializeError(
            f"expected what torch.save writes, found other or damaged bytes ({reason(error)})", path=path
        ) from error


def _permitted(kind: type) -> type | tuple[Callable[[Any], Any], str]:
    """What stands for a class in a pickle: of an enum, a function that finds members.

    A pickle can give what it has made a state. A member that it has found is everyone's, and torch lets it
    change objects of those classes alone that stand for themselves.
    """
    if not isinstance(kind, enum.EnumMeta):
        return kind

    members: Iterable[Any] = kind.__members__.values()

    def member(value: Any) -> Any:
        # Calling the class can make new members, of flags, or run code of its own, `_missing_`.
        for each in members:
            if type(each.value) is type(value) and each.value == value:
                return each
        raise ValueError(f"expected a value of {kind.__qualname__}, found {value!r:.80}")

    return member, f"{kind.__module__}.{kind.__qualname__}"


def tensor_problem(tensor: torch.Tensor, known: Collection[type]) -> str | None:
    """What keeps a tensor from being used that a pickle of plain data held, or None.

    Args:
        tensor: The tensor.
        known: Classes that the pickle might use.

    Example:
        >>> from torch.testing._internal.two_tensor import TwoTensor
        >>> found = TwoTensor(torch.ones(2), torch.ones(2))
        >>> tensor_problem(found, [TwoTensor]), tensor_problem(found, [])
        (None, "expected a tensor of a class that is handed in, found 'TwoTensor'")
    """
    kind = type(tensor)
    if not (kind in _OWN_CLASSES or kind in known):
        return f"expected a tensor of a class that is handed in, found {kind.__qualname__!r}"
    # The class may have operators that need no memory.
    has_operators = kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
    parts = list(parts_of(tensor).values()) or [tensor]
    if not has_operators and not all(map(torch._C._has_storage, parts)):
        return "expected a tensor in memory, found one without"
    marked = parts if parts[0] is tensor else [tensor, *parts]
    return next(filter(None, map(marks_problem, marked)), None)


_OWN_CLASSES = (torch.Tensor, torch.nn.Parameter)


def open_object(data: bytes | memoryview, path: str, *, script: bool) -> Any:
    """What the pickle of a custom object holds. It may run any code: the caller has permitted that.

    Args:
        data: The pickle.
        path: What it is called in messages.
        script: Whether TorchScript wrote it, rather than Python.

    Raises:
        DeserializeError: It is damaged, or of a class that is not there.
    """
    try:
        return torch._C._pickle_load_obj(bytes(data)) if script else pickle.loads(data)
    except Exception as error:  # damaged pickles raise anything
        raise DeserializeError(
            f"expected a pickled object, found what cannot be opened ({reason(error)})",
            path=path,
            hint="Load the library that registers the class before loading",
        ) from error


def _pickles(data: memoryview, path: str) -> list[memoryview]:
    """The pickles in a zip file that is whole and has no deflated records: torch.save writes none, and one
    can be a bomb.
    """
    try:
        entries = read_directory(data, path)
    except DeserializeError as error:
        raise DeserializeError(
            f"expected what torch.save writes, found other or damaged bytes ({error.message})", path=path
        ) from error
    for entry in entries:
        if entry.method != STORED:
            raise DeserializeError(
                f"expected what torch.save writes, found the deflated record {entry.name!r}", path=path
            )
    # torch finds records whatever their case.
    pickled = [entry for entry in entries if entry.name.casefold().endswith(".pkl")]
    return [data[entry.offset : entry.offset + entry.size] for entry in pickled]


def _check_plain(pickles: list[memoryview], path: str, known: Collection[str]) -> None:
    for data in pickles:
        try:
            problem = plain_data_problem(data, known)
        except ValueError:
            return  # torch reads no further than this, and says what is damaged
        if problem is not None:
            raise UnsafeArtifactError(problem, path=path, hint=ALLOW_PICKLE)


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
