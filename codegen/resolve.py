"""From positioned YAML to the resolved model: every name looked up, every default checked.

`load_schema` goes on after a fault, so that one run shows all of them; faults in one type never hide or
cause faults in another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from .data import digest
from .defaults import resolve_default
from .faults import FaultList
from .model import EnumValue, Field, Kind, Position, Release, Schema, TypeDef, TypeRef, Version
from .order import by_value_order
from .reading import Reader
from .source import Element, Entry, Mapping, Scalar, read_source
from .spellings import SpellingError, parse_type

_SCHEMA_KEYS = ("name", "version", "oldest_version", "revision", "treespec_version", "log", "types")
_SINCE_KEYS = ("since", "since_revision")
_MAPPING_KEYS = ("torch", "c10", "bits")
_MAX_FIELD_ID = 2**15 - 1  # the compact protocol writes field ids as i16
_MIN_ENUM, _MAX_ENUM = -(2**31), 2**31 - 1
_MAX_NUMBER = 2**31 - 1
_RETURNED = ", or, where the format itself brought it back, name it in `reserved: {returned: [...]}`"
_MAX_BITS = 2**15  # of one element; far more than any type has

_T = TypeVar("_T")
_Since = tuple[Version | None, int | None]
_Reserved = tuple[tuple[int, ...], tuple[str, ...], tuple[str, ...]]


def load_schema(path: Path) -> Schema:
    """Loads and resolves a schema file.

    Args:
        path: The YAML file. Positions in faults carry it as it is spelled here.

    Returns:
        The resolved model.

    Raises:
        SchemaError: The file is not a schema; `findings` lists every fault with line and column.
        OSError: The file cannot be read.

    Example:
        >>> schema = load_schema(Path(__file__).parent.parent / "generated/schema.yaml")
        >>> [f"{field.id}: {field.type} {field.name}" for field in schema.types["Device"].fields]
        ['10: string type', '20: i64 index']
    """
    return parse_schema(path.read_bytes(), str(path))


@lru_cache(maxsize=8)  # half of what a command takes, and one text is often asked for again
def parse_schema(data: bytes, file: str) -> Schema:
    """Resolves a schema that is at hand as bytes.

    Args:
        data: The YAML.
        file: What positions in faults name as the file.

    Returns:
        The resolved model.

    Raises:
        SchemaError: The bytes are not a schema.
    """
    faults = FaultList()
    root = read_source(data, file, faults)
    schema = _Resolver(faults).schema(root) if root is not None else None
    faults.raise_if_any()
    if schema is None:
        raise AssertionError("a schema was neither resolved nor faulted")
    return replace(schema, digest=digest(schema))


class _Resolver:
    def __init__(self, faults: FaultList) -> None:
        self._faults = faults
        self._reader = Reader(faults)
        self._kinds: dict[str, Kind] = {}
        self._enum_names: dict[str, tuple[str, ...]] = {}

    def schema(self, root: Element) -> Schema | None:
        keys = self._reader.keys(root, "the schema", _SCHEMA_KEYS)
        if keys is None or not isinstance(root, Mapping):
            return None
        places = {key: entry.position for key, entry in root.entries.items()}
        name = self._get(keys, "name", lambda e: self._reader.identifier(e, "`name`"))
        version = self._get(keys, "version", lambda e: self._reader.version(e, "`version`"))
        oldest = self._get(keys, "oldest_version", lambda e: self._reader.version(e, "`oldest_version`"))
        revision = self._get(
            keys, "revision", lambda e: self._reader.integer(e, "`revision`", 0, _MAX_NUMBER)
        )
        treespec = self._get(
            keys, "treespec_version", lambda e: self._reader.integer(e, "`treespec_version`", 0, _MAX_NUMBER)
        )
        log = self._get(keys, "log", self._log)
        types = self._get(keys, "types", self._types)
        if self._faults.findings:
            return None  # a type may be missing that others hold
        assert name and version and oldest and revision is not None and treespec is not None
        assert log is not None and types is not None
        return Schema(
            name, version, oldest, revision, treespec, log, types, by_value_order(types), "", places
        )

    def _get(self, keys: dict[str, Element], key: str, read: Callable[[Element], _T | None]) -> _T | None:
        return read(keys[key]) if key in keys else None

    def _log(self, element: Element) -> tuple[Release, ...] | None:
        releases = []
        for item in self._reader.items(element, "`log`") or ():
            keys = self._reader.keys(item, "a log line", ("version", "torch", "note"))
            if keys is None or len(keys) < 3:
                continue
            version = self._reader.version(keys["version"], "`version`")
            torch = self._reader.string(keys["torch"], "`torch`")
            note = self._reader.string(keys["note"], "`note`")
            if version is not None and torch is not None and note is not None:
                releases.append(Release(version, torch, note, item.position))
        return tuple(releases)

    def _types(self, element: Element) -> dict[str, TypeDef] | None:
        entries = self._reader.mapping(element, "`types`")
        if entries is None:
            return None
        if not entries:
            hint = "Define a struct or union: these are what can be written"
            self._faults.add("empty-type", element.position, "the schema has no types", hint)
        for name, entry in entries.items():
            self._declare(name, entry)
        types = {}
        for name, entry in entries.items():
            resolved = self._type(name, entry)
            if resolved is not None:
                types[name] = resolved
        return types

    def _declare(self, name: str, entry: Entry) -> None:
        """Notes a type's name before any field refers to it; a type with faults is still declared."""
        self._reader.check_name(name, entry, "a type's name")
        body = entry.value.entries if isinstance(entry.value, Mapping) else {}
        kind = body["kind"].value if "kind" in body else None
        text = kind.text if isinstance(kind, Scalar) else ""
        # What has values was meant for an enum, however its kind is misspelled.
        meant = Kind.ENUM if "values" in body else Kind.STRUCT
        self._kinds[name] = next((each for each in Kind if each.value == text), meant)
        values = body["values"].value if "values" in body else None
        if isinstance(values, Mapping):
            self._enum_names[name] = tuple(values.entries)

    def _type(self, name: str, entry: Entry) -> TypeDef | None:
        if not isinstance(entry.value, Mapping):
            self._reader.mapping(entry.value, f"type `{name}`")
            return None
        kind = self._kind(name, entry.value)
        if kind is None:
            return None
        what = f"{kind.value} `{name}`"
        body = "values" if kind is Kind.ENUM else "fields"
        keys = self._reader.keys(entry.value, what, ("kind", "doc", body), (*_SINCE_KEYS, "reserved"))
        if keys is None:
            return None
        since = self._since(keys, what, entry.position, None)
        doc = self._doc(keys, what)
        ids, names, returned = reserved = self._reserved(keys, kind)
        fields: tuple[Field, ...] = ()
        values: tuple[EnumValue, ...] = ()
        if kind is Kind.ENUM:
            values = self._values(name, keys.get(body), since)
            self._check_numbers(what, "value", [(v.name, v.value, v.position) for v in values], *reserved)
        else:
            fields = self._fields(name, kind, keys.get(body), since)
            self._check_numbers(what, "id", [(f.name, f.id, f.position) for f in fields], *reserved)
        body_element = keys.get(body)
        if isinstance(body_element, Mapping) and not body_element.entries:
            self._faults.add(
                "empty-type",
                body_element.position,
                f"{what} has no {body}",
                "A value of it would say nothing",
            )
        return TypeDef(name, kind, doc, *since, fields, values, ids, names, returned, entry.position)

    def _kind(self, name: str, mapping: Mapping) -> Kind | None:
        if "kind" not in mapping.entries:
            self._faults.add("missing-key", mapping.position, f"type `{name}` has no `kind`", "Add it")
            return None
        element = mapping.entries["kind"].value
        text = self._reader.string(element, "`kind`")
        if text is None:
            return None
        try:
            return Kind(text)
        except ValueError:
            message = f"expected `kind` to be enum, struct or union, found `{text}`"
            self._faults.add("wrong-value", element.position, message)
            return None

    def _doc(self, keys: dict[str, Element], what: str) -> str:
        text = self._reader.string(keys["doc"], f"`doc` of {what}") if "doc" in keys else None
        return " ".join((text or "").split())

    def _since(
        self, keys: dict[str, Element], what: str, position: Position, inherited: _Since | None
    ) -> _Since:
        """The version or revision that brought something in; a field's is its type's unless it has one."""
        if "since" in keys and "since_revision" in keys:
            message = f"{what} has both `since` and `since_revision`"
            hint = "`since` is for what the format defines, `since_revision` for what extends it"
            self._faults.add("two-origins", keys["since_revision"].position, message, hint)
        if "since" in keys:
            return self._reader.version(keys["since"], "`since`"), None
        if "since_revision" in keys:
            revision = keys["since_revision"]
            return None, self._reader.integer(revision, "`since_revision`", 0, _MAX_NUMBER)
        if inherited is not None:
            return inherited
        hint = "Add one of them"
        self._faults.add("missing-key", position, f"{what} has neither `since` nor `since_revision`", hint)
        return None, None

    def _reserved(self, keys: dict[str, Element], kind: Kind) -> _Reserved:
        if "reserved" not in keys:
            return (), (), ()
        reserved = self._reader.keys(keys["reserved"], "`reserved`", (), ("ids", "names", "returned")) or {}
        ids = self._get(reserved, "ids", lambda e: self._reader.items(e, "`ids`")) or ()
        names = self._get(reserved, "names", lambda e: self._reader.items(e, "`names`")) or ()
        returned = self._get(reserved, "returned", lambda e: self._reader.items(e, "`returned`")) or ()
        least, most = (_MIN_ENUM, _MAX_ENUM) if kind is Kind.ENUM else (1, _MAX_FIELD_ID)
        return (
            self._distinct(ids, lambda e: self._reader.integer(e, "a reserved id", least, most)),
            self._distinct(names, lambda e: self._reader.identifier(e, "a reserved name")),
            self._distinct(returned, lambda e: self._reader.identifier(e, "a returned name")),
        )

    def _distinct(self, elements: Iterable[Element], read: Callable[[Element], _T | None]) -> tuple[_T, ...]:
        """What elements say; one that comes again may be a slip for another, which is not kept then."""
        found: list[_T] = []
        for element in elements:
            value = read(element)
            if value in found:
                message = f"`{value}` is listed twice under `reserved`"
                hint = "Remove one of the two, or write what was meant"
                self._faults.add("duplicate-reserved", element.position, message, hint)
            elif value is not None:
                found.append(value)
        return tuple(found)

    def _values(self, owner: str, element: Element | None, since: _Since) -> tuple[EnumValue, ...]:
        entries = self._reader.mapping(element, "`values`") if element is not None else None
        values = []
        for name, entry in (entries or {}).items():
            what = f"value `{owner}.{name}`"
            self._reader.check_name(name, entry, "a value's name")
            keys = self._reader.keys(entry.value, what, ("value", "doc"), (*_SINCE_KEYS, *_MAPPING_KEYS))
            if keys is None or "value" not in keys:
                continue
            number = self._reader.integer(keys["value"], f"`value` of {what}", _MIN_ENUM, _MAX_ENUM)
            origin = self._since(keys, what, entry.position, since)
            torch = self._get(keys, "torch", lambda e: self._reader.identifier(e, "`torch`"))
            c10 = self._get(keys, "c10", lambda e: self._reader.identifier(e, "`c10`"))
            bits = self._get(keys, "bits", lambda e: self._reader.integer(e, "`bits`", 1, _MAX_BITS))
            doc = self._doc(keys, what)
            if number is not None:
                values.append(EnumValue(name, number, doc, *origin, torch, c10, bits, entry.position))
        return tuple(values)

    def _fields(self, owner: str, kind: Kind, element: Element | None, since: _Since) -> tuple[Field, ...]:
        entries = self._reader.mapping(element, "`fields`") if element is not None else None
        fields = []
        for name, entry in (entries or {}).items():
            what = f"field `{owner}.{name}`"
            self._reader.check_name(name, entry, "a field's name")
            keys = self._reader.keys(entry.value, what, ("id", "type", "doc"), ("default", *_SINCE_KEYS))
            if keys is None:
                continue
            field_id = self._get(keys, "id", lambda e: self._reader.integer(e, "`id`", 1, _MAX_FIELD_ID))
            parsed = self._get(keys, "type", self._type_ref)
            origin = self._since(keys, what, entry.position, since)
            doc = self._doc(keys, what)
            if field_id is None or parsed is None:
                continue
            ref, optional = parsed
            if kind is Kind.UNION and (optional or "default" in keys):
                position = keys["default"].position if "default" in keys else keys["type"].position
                message = f"{what}: a union's member has neither `optional` nor a default"
                self._faults.add("union-member", position, message, "Exactly one member is set in a union")
                continue
            default = None
            if "default" in keys:
                enum_names = self._enum_names.get(str(ref), ())
                default = resolve_default(self._faults, keys["default"], what, ref, optional, enum_names)
            fields.append(Field(name, field_id, ref, optional, default, doc, *origin, entry.position))
        return tuple(fields)

    def _type_ref(self, element: Element) -> tuple[TypeRef, bool] | None:
        text = self._reader.string(element, "`type`")
        if text is None or not isinstance(element, Scalar):
            return None
        try:
            return parse_type(text, self._kinds)
        except SpellingError as error:
            offset = error.offset + (1 if element.quoted else 0)
            position = replace(element.position, column=element.position.column + offset)
            self._faults.add(error.rule, position, error.message, error.hint)
            return None

    def _check_numbers(
        self,
        what: str,
        number_word: str,
        members: list[tuple[str, int, Position]],
        reserved_ids: tuple[int, ...],
        reserved_names: tuple[str, ...],
        returned: tuple[str, ...],
    ) -> None:
        """Numbers are unique in a type, and neither numbers nor names come back unsaid once reserved."""
        seen: dict[int, str] = {}
        for name, number, position in members:
            if number in seen:
                message = f"{what}: `{name}` has the {number_word} {number} of `{seen[number]}`"
                self._faults.add("duplicate-id", position, message, "Take the next free one")
            seen.setdefault(number, name)
            if name in returned:
                continue
            if number in reserved_ids:
                message = f"{what}: `{name}` takes the reserved {number_word} {number}"
                hint = f"Older files hold something else under it; take the next free one{_RETURNED}"
                self._faults.add("reserved-id", position, message, hint)
            if name in reserved_names:
                message = f"{what}: the name `{name}` is reserved"
                hint = f"Older files hold something else under it; choose another{_RETURNED}"
                self._faults.add("reserved-name", position, message, hint)
