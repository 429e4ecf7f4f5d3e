"""Higher-order operators to which a text is more than a text: the name of a method, the format of a print."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

from ..generated import types
from ..names import check_identifier

_WITH_EFFECTS = "with_effects"
_PREFIX = "torch.ops.higher_order."

#: How a value is set: no fields inside, and no width that takes much memory.
_FORMAT_SPEC = re.compile(r"(?:[^{}0-9]|[0-9]{1,3}(?![0-9])){0,32}")


def check_texts(node: types.Node, name: str) -> Iterator[str]:
    """What is wrong with the texts in a call of a higher-order operator.

    Args:
        node: The call.
        name: The operator's name. Others may be called through one that puts effects in order.
    """
    inputs = [named.arg for named in node.inputs if not named.name]
    if name == _WITH_EFFECTS:  # of a token and an operator with its arguments
        called = inputs[1].as_operator if len(inputs) > 1 and inputs[1].type == "as_operator" else ""
        name, inputs = called.removeprefix(_PREFIX), inputs[2:]
    if name == "call_torchbind":
        yield from _method_problems(inputs)
    elif name == "print":
        keywords = {named.name for named in node.inputs if named.name}
        yield from _format_problems(inputs, keywords)


def _method_problems(inputs: list[types.Argument]) -> Iterator[str]:
    """PyTorch gets the method as an attribute."""
    if [argument.type for argument in inputs[:2]] != ["as_custom_obj", "as_string"]:
        found = ", ".join(argument.type for argument in inputs[:2]) or "none"
        yield f"expected a custom object and the name of a method, found {found}"
        return
    method = inputs[1].as_string
    if check_identifier(method) is not None or method.startswith("_"):
        yield f"expected the name of a public method, found {method[:80]!r}"


def _format_problems(inputs: list[types.Argument], keywords: set[str]) -> Iterator[str]:
    """PyTorch hands the text to `str.format`, whose fields can follow attributes of what is printed."""
    if not inputs or inputs[0].type != "as_string":
        yield f"expected a format, found {inputs[0].type if inputs else 'none'}"
        return
    try:
        parts = list(string.Formatter().parse(inputs[0].as_string))
    except ValueError as error:
        yield f"expected a format, found {inputs[0].as_string[:80]!r}: {error}"
        return
    known = keywords | {"", *map(str, range(len(inputs) - 1))}
    automatic = 0
    for _, field, spec, _ in parts:
        if field is None:  # text behind the last one
            continue
        automatic += field == ""
        if field not in known or automatic >= len(inputs):
            yield f"expected a field that is the number or name of an argument, found {field[:80]!r}"
        elif _FORMAT_SPEC.fullmatch(spec or "") is None:
            yield f"expected a short format of a field, found {spec:.80}"
