"""Python text as the formatter leaves it: long lines split, and what a schema has no use for left out."""

from __future__ import annotations

import ast
import re

from .render import WIDTH

_PAIRS = {"(": ")", "[": "]", "{": "}"}


def tidied(text: str) -> str:
    """A rendered module without imports, blank lines and brackets that have nothing to hold.

    Templates import all that any schema needs of other modules; a schema without unions, say, needs less.
    """
    text = re.sub(r"([(\[{])\n *([)\]}])", r"\1\2", text)
    text = re.sub(r"= \(\n *(.+),\n *\)\n", r"= (\1,)\n", text)  # a tuple of one
    text = re.sub(r"\n{4,}", "\n\n\n", text)
    lines = text.splitlines(keepends=True)
    module = ast.parse(text)
    used = _used(module)
    for statement in reversed(module.body):
        if isinstance(statement, ast.ImportFrom) and statement.module != "__future__":
            names = [ast.unparse(alias) for alias in statement.names if (alias.asname or alias.name) in used]
            if len(names) < len(statement.names):
                end = statement.end_lineno or statement.lineno
                lines[statement.lineno - 1 : end] = _import("." * statement.level, statement.module, names)
    # Two blank lines stand before functions and classes alone.
    text = re.sub(r"^(from .+\n|\)\n)\n\n+(?=[A-Z_])", r"\1\n", "".join(lines), flags=re.M)
    return _kept_as_it_is(text) if any(map(_too_long, text.splitlines())) else text


def _too_long(line: str) -> bool:
    """Whether a line is one that linters complain of: a single word cannot be split, so they let it be."""
    return len(line) > WIDTH and " " in line.strip()


def _kept_as_it_is(text: str) -> str:
    """A module in which the schema's names are too long for its lines: formatter and linter let them be."""
    banner, _, rest = text.partition('\n"""')
    return f'{banner}\n# ruff: noqa: E501\n# fmt: off\n"""{rest}'


def _used(module: ast.Module) -> set[str]:
    """The names that a module reads, and those that it exports."""
    used = {node.id for node in ast.walk(module) if isinstance(node, ast.Name)}
    for statement in module.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            used |= set(ast.literal_eval(statement.value))
    return used


def _import(dots: str, module: str | None, names: list[str]) -> list[str]:
    if not names:
        return []
    head = f"from {dots}{module or ''} import "
    if len(line := f"{head}{', '.join(names)}\n") <= WIDTH:
        return [line]
    return [f"{head}(\n", *(f"    {name},\n" for name in names), ")\n"]


def fitted(begin: str, expression: str, end: str, indent: int) -> list[str]:
    """The lines of `begin expression end` as the formatter leaves them.

    What does not fit in a line is split: a call, list or dict within its brackets, and so on inwards;
    anything else is bracketed if it is assigned. A name that is longer than a line stays as it is.
    """
    pad = " " * indent
    line = f"{pad}{begin}{expression}{end}"
    opening = re.match(r"\w*[(\[{]", expression)
    if len(line) <= WIDTH:
        return [line]
    if opening is not None and _closing(expression, opening.end() - 1) == len(expression) - 1:
        inner = expression[opening.end() : -1]
        return [f"{pad}{begin}{opening[0]}", *_inside(inner, indent + 4), f"{pad}{expression[-1]}{end}"]
    if begin.endswith((" = ", "lambda o: ")) or not begin:
        condition = re.fullmatch(r"(.*?) (if .*?) (else .*)", expression)
        inside = [f"{pad}    {expression}"]
        if len(inside[0]) > WIDTH and condition is not None:
            first, test, other = condition.groups()
            rest = fitted("else ", other.removeprefix("else "), "", indent + 4)
            inside = [f"{pad}    {first}", f"{pad}    {test}", *rest]
        if len(inside[0]) <= WIDTH:
            return [f"{pad}{begin}(", *inside, f"{pad}){end}"]
    return [line]


def _inside(text: str, indent: int) -> list[str]:
    """What stands within brackets: on one line, else split before the `for` of a comprehension."""
    pad = " " * indent
    if len(pad + text) <= WIDTH:
        return [pad + text]
    split = _at_top(text, " for ")
    if split is None:
        return _arguments(text, indent)
    element, clause = text[:split], text[split + 1 :]
    key, colon, value = element.partition(": ")
    parts = (f"{key}: ", value) if colon and key.isidentifier() else ("", element)
    head, _, source = clause.partition(" in ")
    return [*fitted(*parts, "", indent), *fitted(f"{head} in ", source, "", indent)]


def _closing(text: str, start: int) -> int:
    """Where the bracket that opens at `start` is closed."""
    depth = 0
    for index in range(start, len(text)):
        depth += (text[index] in _PAIRS) - (text[index] in _PAIRS.values())
        if depth == 0:
            return index
    raise AssertionError(f"a bracket is not closed: {text}")


def _arguments(text: str, indent: int) -> list[str]:
    """Arguments of a call, one a line where there are several."""
    comma = _at_top(text, ", ")
    if comma is None:
        return fitted("", text, "", indent)
    lines = []
    while text:
        comma = _at_top(text, ", ")
        argument, text = (text, "") if comma is None else (text[:comma], text[comma + 2 :])
        begin = "lambda v: " if argument.startswith("lambda v: ") else ""
        lines += fitted(begin, argument.removeprefix(begin), ",", indent)
    return lines


def _at_top(text: str, wanted: str) -> int | None:
    """Where something stands outside of all brackets."""
    depth = 0
    for index, sign in enumerate(text):
        depth += (sign in _PAIRS) - (sign in _PAIRS.values())
        if depth == 0 and text.startswith(wanted, index):
            return index
    return None


def fitted_call(name: str, arguments: list[str], indent: int) -> list[str]:
    """The lines of an item that is a call, as the formatter leaves them."""
    pad = " " * indent
    joined = ", ".join(arguments)
    if len(f"{pad}{name}({joined}),") <= WIDTH:
        return [f"{pad}{name}({joined}),"]
    if len(f"{pad}    {joined}") <= WIDTH:
        return [f"{pad}{name}(", f"{pad}    {joined}", f"{pad}),"]
    return [f"{pad}{name}(", *_arguments(joined, indent + 4), f"{pad}),"]


def literal(value: object) -> str:
    """A Python literal, quoted as the formatter does: in single quotes only where that saves escapes."""
    if isinstance(value, float):
        return repr(value).replace("e+", "e")
    if not isinstance(value, str) or ('"' in value and "'" not in value):
        return repr(value)
    escaped = repr('"' + value)[2:-1]  # the quote added makes repr use single quotes
    return '"' + escaped.replace("\\'", "'").replace('"', '\\"') + '"'
