"""Classes that a file names: found among those that are here already, never imported for it."""

from __future__ import annotations

import sys
from typing import Any


def path_of(kind: type) -> str:
    """What a file calls a class: `MODULE:QUALIFIED_NAME`.

    Example:
        >>> path_of(int)
        'builtins:int'
    """
    return f"{kind.__module__}:{kind.__qualname__}"


def known_class(path: str, known: tuple[type, ...]) -> type | None:
    """The class that a caller has handed in, or None.

    Args:
        path: As of `path_of`.
        known: The classes handed in.

    Example:
        >>> known_class("builtins:int", (int, str))
        <class 'int'>
    """
    return next((kind for kind in known if path_of(kind) == path), None)


def handing_in(path: str) -> str:
    """The hint for whoever meets a class that was not handed in.

    Example:
        >>> handing_in("vendor.tensors:Quantized")
        'Pass types=[Quantized] with the class of vendor.tensors if you trust it to be made from a file'
    """
    module, _, name = path.partition(":")
    return f"Pass types=[{name[:80]}] with the class of {module[:80]} if you trust it to be made from a file"


def importing(module: str) -> str:
    """The hint for whoever lacks what a module defines or registers; a file may call it whatever it likes.

    Example:
        >>> importing("transformers.modeling_outputs")
        'It needs `import transformers.modeling_outputs` first'
        >>> importing("rm -r *")
        'It needs the library that defines it first'
    """
    is_module = all(map(str.isidentifier, module.split("."))) and len(module) <= 100
    return f"It needs {f'`import {module}`' if is_module else 'the library that defines it'} first"


def importing_or_handing_in(module: str) -> str:
    """The hint of `importing`, for classes that a caller can hand in as well.

    Example:
        >>> importing_or_handing_in("signal")
        'It needs `import signal` first, or pass the class with types=[...]'
    """
    return f"{importing(module)}, or pass the class with types=[...]"


def find_class(module: str, qualified_name: str, known: tuple[type, ...] = ()) -> type | None:
    """The class of a name, or None where it is neither handed in nor imported.

    Args:
        module: The module that defines it.
        qualified_name: Its name there, with dots for classes in classes.
        known: Classes that the caller has handed in, which may come from anywhere.

    Example:
        >>> find_class("torch", "Tensor")
        <class 'torch.Tensor'>
        >>> find_class("this", "s") is None and "this" not in sys.modules
        True
    """
    handed_in = known_class(f"{module}:{qualified_name}", known)
    if handed_in is not None:
        return handed_in
    found: Any = sys.modules.get(module)
    for name in qualified_name.split("."):
        # The namespace itself rather than getattr: a module may import what it is asked for.
        found = vars(found).get(name) if hasattr(found, "__dict__") else None
    return found if isinstance(found, type) else None
