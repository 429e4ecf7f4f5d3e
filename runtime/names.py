"""Which names a file may use.

torch.fx generates Python source from the names in a graph: a placeholder's name becomes a parameter, a
subgraph's name an attribute, a weight's name part of an expression in quotes. Text that is anything but a
name there is code. Each check gives the reason for which a name is refused, or None.
"""

from __future__ import annotations

import keyword
import re
import unicodedata

#: Longest name, in characters. The longest that PyTorch made in a survey of models had about 200; modules
#: that lie deep in others, or are called by what they do, may have longer ones.
MAX_NAME = 4_096

#: Names that have a meaning of their own in the source that torch.fx generates. A value named `inf` would
#: silently stand in for infinity, one named `infj` for an imaginary one, one named `torch` for the module.
RESERVED = frozenset({"self", "torch", "inf", "nan", "infj", "nanj", "pytree", "fx_pytree"})

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FLOAT_SYMBOL = re.compile(r"zu?f[0-9]+")
_DEVICE_TYPE = re.compile(r"[a-z][a-z0-9_]{0,31}")
_MAX_DEVICE_INDEX = 127  # torch keeps it in one signed byte


def check_identifier(name: str) -> str | None:
    """Checks the name of an argument or a subgraph: an ASCII identifier.

    torch.fx writes such names into source as they are. ASCII, since Python folds other letters (two names
    that differ here could be one there).

    Example:
        >>> check_identifier("x_1")
        >>> check_identifier("x=__import__('os')")
        'not an identifier'
        >>> check_identifier("__debug__")
        'a keyword of Python'
    """
    if len(name) > MAX_NAME:
        return f"longer than {MAX_NAME} characters"
    if not _IDENTIFIER.fullmatch(name):
        return "not an identifier" if name else "empty"
    if keyword.iskeyword(name) or name == "__debug__":  # which nothing can be assigned to either
        return "a keyword of Python"
    return None


def is_float_symbol(name: str) -> bool:
    """Whether PyTorch gives this name to symbols of floats.

    Example:
        >>> is_float_symbol("zf3"), is_float_symbol("zuf0"), is_float_symbol("u0")
        (True, True, False)
    """
    return _FLOAT_SYMBOL.fullmatch(name) is not None


def check_value_name(name: str) -> str | None:
    """Checks the name of a value, a node or an input, which torch.fx makes a variable: see `RESERVED`.

    Example:
        >>> check_value_name("inf")
        'a name with a meaning of its own in the source that torch.fx generates'
    """
    if name in RESERVED:
        return "a name with a meaning of its own in the source that torch.fx generates"
    return check_identifier(name)


def check_forward_name(name: str) -> str | None:
    """Checks the name of an argument of the program's `forward`, which may have letters beyond ASCII.

    PyTorch makes it a parameter of the function that it generates. Python reads such letters in one normal
    form; a name in another one would be another name there.

    Example:
        >>> check_forward_name("größe")
        >>> check_forward_name("\N{LATIN SMALL LIGATURE FI}")
        'not in the normal form that Python reads names in'
    """
    if name.isascii() or not name.isidentifier() or len(name) > MAX_NAME:
        return check_value_name(name)
    if unicodedata.normalize("NFKC", name) != name:
        return "not in the normal form that Python reads names in"
    return None


def check_device(kind: str, index: int | None) -> str | None:
    """Checks the type of a device, as torch or a backend's author would name it, and its index.

    Unlike the other checks, this one gives a whole sentence.

    Example:
        >>> check_device("cuda", 0)
        >>> check_device("cpu", 128)
        'expected a device index from 0 to 127, found 128'
    """
    if not _DEVICE_TYPE.fullmatch(kind):
        return f"expected the name of a device type such as 'cpu' or 'cuda', found {kind[:40]!r}"
    if index is not None and not 0 <= index <= _MAX_DEVICE_INDEX:
        return f"expected a device index from 0 to {_MAX_DEVICE_INDEX}, found {index}"
    return None


_ESCAPE = re.compile(r"\\(?:[\\abfnrtvxNuU0-7]|\Z)")
#: Control characters but for tabs, which end no text.
_CONTROL = frozenset(map(chr, (*range(32), *range(127, 160)))) - {"\t"}


def check_text(text: str) -> str | None:
    """Checks text that PyTorch pastes between quotes into source: constant string inputs.

    PyTorch does not escape what it pastes, so a quote or a backslash could end the string, and the end of a
    line the source: for an honest `it's`, too, `module()` fails there. A backslash that Python takes as it
    is, as before the `d` of a regular expression, does no harm.

    Example:
        >>> check_text("a b")
        >>> check_text("it's")
        'holds a quote, which PyTorch pastes into source unescaped'
    """
    if _ESCAPE.search(text):
        return "holds a backslash that Python takes for an escape, which PyTorch pastes into source as it is"
    for character in text:
        if character in "\"'":
            return "holds a quote, which PyTorch pastes into source unescaped"
        if character in _CONTROL:
            return f"holds {character!r}, which is a control character other than a tab"
    return None


def check_key(text: str) -> str | None:
    """Checks a dictionary key among the inputs: PyTorch pastes its `repr`, quotes and all, between quotes.

    It does so for each size that it checks, so that an honest `it's` fails in PyTorch, too, unless all sizes
    behind it are dynamic and without bounds. The key does not tell, so it is refused there as well.

    Example:
        >>> check_key("a b\\n")
        >>> check_key("it's")
        'holds a quote, which PyTorch pastes into source unescaped'
    """
    if "'" in text or '"' in text:
        return "holds a quote, which PyTorch pastes into source unescaped"
    return None


#: Control characters but for tabs, and surrogates, which UTF-8 cannot hold.
_UNFIT = re.compile("[\\x00-\\x08\\x0a-\\x1f\\x7f-\\x9f\\ud800-\\udfff]")


def check_fqn(fqn: str) -> str | None:
    """Checks the fully qualified name of a parameter, buffer, constant or module.

    The parts between the dots may be any text (`lin(1).weight`, `x[0]` and `a b` are honest), but not empty,
    and without a double quote, a backslash and the end of a line: torch.fx puts a part that is no identifier
    between double quotes, as it is. Other control characters than tabs could reach a terminal.

    Example:
        >>> check_fqn("encoder.layers.0.weight")
        >>> check_fqn('a")+b')
        'holds a double quote'
    """
    if len(fqn) > MAX_NAME:
        return f"longer than {MAX_NAME} characters"
    if '"' in fqn:
        return "holds a double quote"
    if "\\" in fqn:
        return "holds a backslash"
    if unfit := _UNFIT.search(fqn):
        return f"holds {unfit[0]!r}, a control character or a surrogate"
    if not all(fqn.split(".")):
        return "has an empty part" if fqn else "empty"
    return None
