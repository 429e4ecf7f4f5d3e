"""PyTorch's own schema, read from the files that it ships: as text, without importing torch.

`export_schema.thrift` has types, ids and enum values, `schema.yaml` beside it has defaults and versions.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from .model import Kind, Version

_FOLDER = Path("_export/serde")
_BLOCK = re.compile(r"(enum|struct|union) (\w+) \{")
_VALUE = re.compile(r"(\w+) = (-?\d+),?")
_FIELD = re.compile(r"(\d+): (optional )?([\w<>, ]+?) (\w+);")
#: Words of the IDL, and what PyTorch's schema.yaml has for them.
_PYTHON = {"i64": "int", "double": "float", "string": "str", "list": "List", "map": "Dict"}


class TorchSchemaError(Exception):
    """PyTorch's schema cannot be found or read; the message says where it was looked for."""


@dataclass(frozen=True, slots=True)
class TorchMember:
    """A field, union member or enum value (no type, no default), spelled as in our schema.yaml."""

    name: str
    number: int
    type: str
    default: str | None


@dataclass(frozen=True, slots=True)
class TorchType:
    """A type of PyTorch's."""

    name: str
    kind: Kind
    members: tuple[TorchMember, ...]


@dataclass(frozen=True, slots=True)
class TorchSchema:
    """PyTorch's schema; `release` is the release of torch that ships it."""

    release: str
    version: Version
    treespec_version: int
    types: dict[str, TorchType]


def find_torch() -> Path:
    """The folder of the installed torch, found without importing it.

    Raises:
        TorchSchemaError: torch is not installed.
    """
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        raise TorchSchemaError("torch is not installed; name the folder of one with --torch")
    return Path(spec.submodule_search_locations[0])


def read_torch(folder: Path) -> TorchSchema:
    """The schema that a torch ships.

    Args:
        folder: Of the package, such as `site-packages/torch`.

    Raises:
        TorchSchemaError: The files are not there, or not in the form that is known.
    """
    texts = {}
    for name in ("version.py", _FOLDER / "schema.yaml", _FOLDER / "export_schema.thrift"):
        try:
            texts[Path(name).name] = (folder / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise TorchSchemaError(f"{folder} is no torch with a schema: {error}") from error
    try:
        plain = yaml.safe_load(texts["schema.yaml"])
        major, minor = plain["SCHEMA_VERSION"]
        version, treespec_version = Version(int(major), int(minor)), int(plain["TREESPEC_VERSION"])
    except (yaml.YAMLError, KeyError, TypeError, ValueError, RecursionError) as error:
        place = folder / _FOLDER / "schema.yaml"
        raise TorchSchemaError(f"{place}: expected SCHEMA_VERSION and TREESPEC_VERSION: {error!r}") from error
    release = re.search(r"""^__version__ = ['"]([^'"+]*)""", texts["version.py"], re.M)
    if release is None:
        raise TorchSchemaError(f"{folder / 'version.py'}: expected a line `__version__ = ...`")
    idl = folder / _FOLDER / "export_schema.thrift"
    types = _types(idl, texts["export_schema.thrift"], plain)
    for disagreement in _disagreements(types, plain):
        raise TorchSchemaError(f"{idl} and schema.yaml beside it disagree: {disagreement}")
    return TorchSchema(release[1], version, treespec_version, types)


def _types(path: Path, idl: str, plain: Any) -> dict[str, TorchType]:
    """The types in the IDL. A line of another form than is known is an error: what it says would be lost."""
    types: dict[str, TorchType] = {}
    kind, name, members = Kind.STRUCT, "", list[TorchMember]()
    for number, line in enumerate(idl.splitlines(), 1):
        text = line.strip()
        if not text or text.startswith(("//", "namespace ")):
            continue
        if not name and (match := _BLOCK.fullmatch(text)):
            kind, name, members = Kind(match[1]), match[2], []
        elif name and text == "}":
            types[name] = TorchType(name, kind, tuple(members))
            name = ""
        elif name and kind is Kind.ENUM and (match := _VALUE.fullmatch(text)):
            members.append(TorchMember(match[1], int(match[2]), "", None))
        elif name and kind is not Kind.ENUM and (match := _FIELD.fullmatch(text)):
            optional, spelling, field = match[2] or "", match[3], match[4]
            default = _default(plain, name, field, optional, spelling)
            members.append(TorchMember(field, int(match[1]), optional + spelling, default))
        else:
            raise TorchSchemaError(f"{path}:{number}: expected a type, a field or a value, found `{text}`")
    return types


def _disagreements(types: dict[str, TorchType], plain: dict[str, Any]) -> Iterator[str]:
    """Where PyTorch's two files contradict each other: then nobody can tell what its format is."""
    described = {name: body for name, body in plain.items() if isinstance(body, dict)}
    if not types:
        yield "the first has no types"
    for name in sorted({*types, *described}):
        if name not in types or name not in described:
            yield f"only {'the first' if name in types else 'the second'} has `{name}`"
            continue
        ours, theirs = types[name], described[name]
        if theirs.get("kind") != ours.kind.value:
            yield f"`{name}` is {ours.kind.value} in the first, {theirs.get('kind')} in the second"
        members = theirs.get("fields") or {}
        spelled = {member.name: _as_python(member) for member in ours.members}
        for member in sorted({*spelled, *members}, key=str):
            body = members.get(member)
            said = body.get("type") if isinstance(body, dict) else body
            if said != spelled.get(member):
                yield f"`{name}.{member}` is {spelled.get(member)} in the first, {said} in the second"


def _as_python(member: TorchMember) -> str | int:
    """A member as PyTorch's schema.yaml has it: an enum's number, or a field's type in Python's spelling."""
    if not member.type:
        return member.number
    text = re.sub(r"\w+", lambda word: _PYTHON.get(word[0], word[0]), member.type.removeprefix("optional "))
    text = text.replace("<", "[").replace(">", "]")
    return f"Optional[{text}]" if member.type.startswith("optional ") else text


def _default(plain: Any, owner: str, field: str, optional: str, spelling: str) -> str | None:
    """A default in the notation of our schema.yaml. PyTorch writes the repr of all but strings."""
    try:
        body = plain[owner]["fields"][field]
    except (KeyError, TypeError):
        return None
    if "default" not in body:
        return None
    text = str(body["default"])
    if optional and text == "None":
        return "null"
    if (values := _values(plain, spelling)) is not None:  # PyTorch's enums print as numbers
        return next((name for name, value in values.items() if text == str(value)), text)
    if spelling == "string":
        return json.dumps(text, ensure_ascii=False)
    return text.lower() if spelling == "bool" else text


def _values(plain: Any, spelling: str) -> dict[str, Any] | None:
    """The values of an enum by name; None for other types."""
    body = plain.get(spelling)
    values = body.get("fields") if isinstance(body, dict) and body.get("kind") == Kind.ENUM.value else None
    return values if isinstance(values, dict) else None
