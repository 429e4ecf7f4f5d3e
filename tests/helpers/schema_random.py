"""Small schemas changed at random, and whether documents of one are read by the other as the same."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pt2wire.codegen.model import Kind, ListType, MapType, NamedType, Schema, TypeRef

from .compendium import least, variants
from .schema_edits import Bindings
from .schemas import indented


@dataclass
class Member:
    """A field, a union's member or an enum's value (no type), as YAML spells it."""

    name: str
    number: int
    type: str = ""
    default: str | None = None
    optional: bool = False
    own: bool = False

    def text(self) -> str:
        if not self.type:
            return f"{self.name}: {{value: {self.number}, doc: d}}"
        type_ = f"optional {self.type}" if self.optional else self.type
        default = f", default: {self.default}" if self.default is not None else ""
        since = ", since_revision: 1" if self.own else ""
        return f"{self.name}: {{id: {self.number}, type: '{type_}'{default}{since}, doc: d}}"


@dataclass
class Type:
    kind: str
    members: list[Member] = field(default_factory=list)
    own: bool = False


Types = dict[str, Type]


def base() -> Types:
    """A field of each kind."""
    return {
        "Kind": Type("enum", [Member("ZERO", 0), Member("ONE", 1), Member("SIX", 6)]),
        "Choice": Type(
            "union",
            [Member("as_int", 10, "i64"), Member("as_text", 20, "string"), Member("as_kind", 30, "Kind")],
        ),
        "Leaf": Type("struct", [Member("a", 10, "i64"), Member("b", 20, "i64", "5")]),
        "Thing": Type(
            "struct",
            [
                Member("x", 10, "i64"),
                Member("kind", 20, "Kind"),
                Member("choices", 30, "list<Choice>"),
                Member("leaf", 35, "Leaf"),
                Member("flag", 40, "bool", "false"),
                Member("shade", 60, "Kind", "SIX"),
                Member("text", 70, "string", "ab"),
                Member("items", 80, "list<i64>", "[]"),
                Member("table", 90, "map<string, Leaf>", "{}"),
                Member("note", 100, "string", "null", optional=True),
                Member("ours", 1000, "Ours", "null", optional=True, own=True),
                Member("many", 110, "list<Leaf>", "null", optional=True),
            ],
        ),
        "Ours": Type(
            "struct",
            [
                Member("note", 10, "string", "null", optional=True),
                Member("count", 20, "i64", "0"),
                Member("leaf", 30, "Leaf", "null", optional=True),
            ],
            own=True,
        ),
    }


def spelled(types: Types) -> str:
    """The schema of these types as a file."""
    lines = []
    for name, type_ in types.items():
        body = "values" if type_.kind == "enum" else "fields"
        since = "since_revision: 1" if type_.own else 'since: "8.2"'
        lines += [f"{name}:", f"  kind: {type_.kind}", f"  {since}", "  doc: d", f"  {body}:"]
        lines += [f"    {member.text()}" for member in type_.members]
    return indented("\n".join(lines))


_TYPES = (
    *("i64", "bool", "double", "string", "binary", "Kind", "Leaf", "Choice", "list<i64>", "list<bool>"),
    *(
        "list<string>",
        "list<Choice>",
        "list<Kind>",
        "map<string, i64>",
        "map<string, Leaf>",
        "list<list<i64>>",
    ),
)
_DEFAULTS = {"i64": "7", "bool": "true", "double": "2.5", "string": "zz", "Kind": "ONE", "binary": '""'}


def _default(type_: str) -> str | None:
    return {"l": "[]", "m": "{}"}.get(type_[0]) if "<" in type_ else _DEFAULTS.get(type_)


def _remove(types: Types, type_: Type, member: Member, r: random.Random) -> None:
    type_.members.remove(member)


def _renumber(types: Types, type_: Type, member: Member, r: random.Random) -> None:
    member.number = r.choice([1, 10, 20, 30, member.number + 5])


def _rename(types: Types, type_: Type, member: Member, r: random.Random) -> None:
    member.name = r.choice(["other", f"{member.name}_v"])


def _retype(types: Types, type_: Type, member: Member, r: random.Random) -> None:
    if member.type:
        member.type = r.choice(_TYPES)
        member.default = _default(member.type) if member.default and not member.optional else member.default


def _toggle_optional(types: Types, type_: Type, member: Member, r: random.Random) -> None:
    if type_.kind == "struct":
        member.optional = not member.optional
        member.default = "null" if member.optional else r.choice([None, _default(member.type)])


def _redefault(types: Types, type_: Type, member: Member, r: random.Random) -> None:
    if type_.kind == "struct" and not member.optional:
        member.default = r.choice([None, _default(member.type)])


def _add(types: Types, type_: Type, member: Member, r: random.Random) -> None:
    new = Member("new", r.choice([max(m.number for m in type_.members) + 10, r.randint(1, 130)]))
    if type_.kind != "enum":
        new.type = r.choice(_TYPES)
        new.optional = type_.kind == "struct" and r.random() < 0.4
        if type_.kind == "struct":
            new.default = "null" if new.optional else r.choice([None, _default(new.type)])
    new.own = new.optional and not type_.own and r.random() < 0.3
    new.number += 1000 if new.own else 0
    type_.members.append(new)


def _shuffle(types: Types, type_: Type, member: Member, r: random.Random) -> None:
    r.shuffle(type_.members)


def _rename_type(types: Types, type_: Type, member: Member, r: random.Random) -> None:
    old = next(name for name, other in types.items() if other is type_)
    changed = {("Other" if name == old else name): other for name, other in types.items()}
    for one in (m for other in changed.values() for m in other.members):
        one.type = re.sub(rf"\b{old}\b", "Other", one.type)
    types.clear()
    types.update(changed)


def _change_kind(types: Types, type_: Type, member: Member, r: random.Random) -> None:
    if type_.kind != "enum":
        type_.kind = "union" if type_.kind == "struct" else "struct"
        for one in type_.members if type_.kind == "union" else ():
            one.optional, one.default = False, None


_EDITS: tuple[Callable[[Types, Type, Member, random.Random], None], ...] = (
    *(_remove, _renumber, _rename, _retype, _toggle_optional, _redefault, _add, _add),
    *(_shuffle, _rename_type, _change_kind),
)


def changed_at_random(types: Types, r: random.Random) -> Types:
    """One to three edits; the result need not be a schema."""
    types = copy.deepcopy(types)
    for _ in range(r.choice([1, 1, 2, 3])):
        type_ = r.choice(list(types.values()))
        if type_.members:
            r.choice(_EDITS)(types, type_, r.choice(type_.members), r)
    return types


def samples(bound: Bindings) -> Iterator[tuple[NamedType, Any]]:
    """Documents of every struct and union: with all that they can hold, and with as little."""
    for name, definition in bound.schema.types.items():
        if definition.kind is not Kind.ENUM:
            trees = variants(bound.schema, bound.types, name)
            for tree in (*trees, least(bound.schema, bound.types, name)):
                yield NamedType(name, definition.kind), tree


def without_defaults(schema: Schema, ref: TypeRef, plain: Any) -> Any:
    """A document as JSON that lacks all that readers have a default for."""
    match ref:
        case ListType(item):
            return [without_defaults(schema, item, one) for one in plain]
        case MapType(value):
            return {key: without_defaults(schema, value, one) for key, one in plain.items()}
        case NamedType(name, Kind.UNION):
            ((member, held),) = plain.items()
            ref = next(f.type for f in schema.types[name].fields if f.name == member)
            return {member: without_defaults(schema, ref, held)}
        case NamedType(name, Kind.STRUCT):
            needed = [f for f in schema.types[name].fields if not f.optional and f.default is None]
            return {f.name: without_defaults(schema, f.type, plain[f.name]) for f in needed}
        case _:
            return plain


def said(schema: Schema, ref: TypeRef, value: Any, *, by: str) -> Any:
    """What a value says, whatever things are called: members by `id` or by `name`, enums as numbers."""
    match ref:
        case _ if value is None:
            return None
        case ListType(item):
            return [said(schema, item, one, by=by) for one in value]
        case MapType(item):
            return {key: said(schema, item, one, by=by) for key, one in value.items()}
        case NamedType(_, Kind.ENUM):
            return int(value)
        case NamedType(name, Kind.UNION):
            member = next(f for f in schema.types[name].fields if f.name == value.type)
            return _Said({getattr(member, by): said(schema, member.type, value.value, by=by)})
        case NamedType(name):
            fields = schema.types[name].fields
            return _Said(
                {getattr(f, by): said(schema, f.type, getattr(value, f.name), by=by) for f in fields}
            )
        case _:
            return repr(value)


class _Said(dict[Any, Any]):
    """What a struct or union says."""


def contains(more: Any, less: Any) -> bool:
    """Whether one says all that another says; what stands there besides has come since."""
    if isinstance(less, _Said):
        return isinstance(more, _Said) and all(k in more and contains(more[k], v) for k, v in less.items())
    if isinstance(less, dict):
        return (
            isinstance(more, dict)
            and more.keys() == less.keys()
            and all(contains(more[key], value) for key, value in less.items())
        )
    if isinstance(less, list):
        return isinstance(more, list) and len(more) == len(less) and all(map(contains, more, less))
    return type(more) is type(less) and bool(more == less)
