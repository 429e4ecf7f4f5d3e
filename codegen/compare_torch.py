"""What schema.yaml lacks of an installed PyTorch's schema, as YAML to paste, and where the two contradict."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from .faults import with_article
from .lint_log import NO_ADDITION, NO_RELEASE, versions_between
from .model import (
    FIRST_OWN_ID,
    EnumValue,
    Field,
    Kind,
    MapType,
    NamedType,
    Schema,
    TypeDef,
    Version,
    members,
    number,
)
from .torch_schema import TorchMember, TorchSchema, TorchType

_DOC = "TODO."


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a bump would have to do.

    Attributes:
        additions: Names of what PyTorch has and schema.yaml lacks.
        contradictions: Sentences on what both have, but differently, or only schema.yaml has.
        text: All of it for a person: YAML to paste, with comments on where, and on what has to give way.
    """

    additions: tuple[str, ...]
    contradictions: tuple[str, ...]
    text: str


def compare_torch(schema: Schema, torch: TorchSchema) -> Comparison:
    """Compares the part of a schema that is PyTorch's with PyTorch's own."""
    ours = {name: definition for name, definition in schema.types.items() if not definition.own}
    new_types = [theirs for name, theirs in torch.types.items() if name not in ours]
    new_members = [
        (ours[name], member)
        for name, theirs in torch.types.items()
        if name in ours and theirs.kind is ours[name].kind
        for member in theirs.members
        if member.name not in {mine.name for mine in _of_pytorch(ours[name])}
    ]
    additions = [theirs.name for theirs in new_types]
    additions += [f"{definition.name}.{member.name}" for definition, member in new_members]
    contradictions = tuple(_contradictions(schema, ours, torch))
    blocks = [_heading(schema, torch), *_numbers(schema, torch, additions)]
    blocks += _adopted(schema, new_types, new_members)
    blocks += _returned(new_members)
    named = [(theirs.name, member) for theirs in new_types for member in theirs.members]
    blocks += _unsayable([*named, *((owner.name, member) for owner, member in new_members)], torch)
    blocks += [_new_type(theirs, torch) for theirs in new_types]
    blocks += _new_members(new_members, torch)
    if contradictions:
        lines = ["# These contradict; a change of PyTorch's here is one for a new major version:"]
        blocks.append("\n".join([*lines, *(f"#   {text}" for text in contradictions)]))
    return Comparison(tuple(additions), contradictions, "\n\n".join(blocks))


def _heading(schema: Schema, torch: TorchSchema) -> str:
    return f"# schema.yaml describes version {schema.version}, torch {torch.release} writes {torch.version}."


def _numbers(schema: Schema, torch: TorchSchema, additions: list[str]) -> Iterator[str]:
    if schema.version != torch.version:
        note = f"Adds {', '.join(additions)}." if additions else NO_ADDITION
        lines = [
            "# At the top:",
            f'version: "{torch.version}"',
        ]
        if torch.version.major > schema.version.major:  # whose readers take no older file
            lines.append(f'oldest_version: "{torch.version.major}.0"')
        lines.append("# At the end of `log`:")
        for version in versions_between(schema.version, torch.version):
            lines += _log_line(version, NO_RELEASE, NO_ADDITION)
        lines += _log_line(torch.version, torch.release, note)
        yield "\n".join(lines)


def _log_line(version: Version, release: str, note: str) -> list[str]:
    return [f'  - version: "{version}"', f'    torch: "{release}"', f"    note: {note}"]


def _adopted(
    schema: Schema, new_types: list[TorchType], new_members: list[tuple[TypeDef, TorchMember]]
) -> Iterator[str]:
    """What of ours has a name that is PyTorch's from now on."""
    types = [f"the type {theirs.name}" for theirs in new_types if theirs.name in schema.types]
    fields = [
        f"{owner.name}.{mine.name}, which keeps the id {mine.id}"
        for owner, member in new_members
        for mine in owner.fields
        if mine.name == member.name
    ]
    if types or fields:
        lines = ["# These names are ours so far. Rename ours first, in the schema and in the runtime:"]
        lines += [f"#   {name}" for name in (*types, *fields)]
        if fields:
            lines += ["# JSON knows fields by name alone, so this is a revision of ours. At the top:"]
            lines += [f"revision: {schema.revision + 1}"]
        yield "\n".join(lines)


def _returned(new_members: list[tuple[TypeDef, TorchMember]]) -> Iterator[str]:
    """What PyTorch brings back of what it had given up."""
    found: dict[str, list[str]] = {}
    for owner, member in new_members:
        if member.number in owner.reserved_ids or member.name in owner.reserved_names:
            found.setdefault(owner.name, list(owner.returned)).append(member.name)
    if found:
        lines = ["# These come back, under ids or names that are reserved. Say so beside `ids` and `names`:"]
        lines += [f"#   {name}: `returned: [{', '.join(members)}]`" for name, members in found.items()]
        yield "\n".join(lines)


def _unsayable(new_members: list[tuple[str, TorchMember]], torch: TorchSchema) -> Iterator[str]:
    """What schema.yaml has no notation for, or keeps for others, as PyTorch has it."""
    found = []
    for owner, member in new_members:
        kind = torch.types[member.type].kind if member.type in torch.types else None
        if member.type == "double" and member.default in ("inf", "-inf", "nan"):
            found.append(f"{owner}.{member.name} has the default {member.default}, and ours are finite")
        if kind is Kind.ENUM and (member.default or "").lstrip("-").isdigit():
            found.append(f"{owner}.{member.name} has the default {member.default}, no value of {member.type}")
        if member.type and member.number >= FIRST_OWN_ID:
            kept = f"and those from {FIRST_OWN_ID} up are of extensions"
            found.append(f"{owner}.{member.name} has the id {member.number}, {kept}")
    if found:
        yield "\n".join(["# These cannot be pasted as they are:", *(f"#   {text}" for text in found)])


def _new_type(theirs: TorchType, torch: TorchSchema) -> str:
    body = "values" if theirs.kind is Kind.ENUM else "fields"
    lines = [
        "# Under `types`:",
        f"  {_as_text(theirs.name)}:",
        f"    kind: {theirs.kind.value}",
        f'    since: "{torch.version}"',
        f"    doc: {_DOC}",
        f"    {body}:",
    ]
    for member in theirs.members:
        lines += _entry(member, None)
    return "\n".join(lines)


def _new_members(found: list[tuple[TypeDef, TorchMember]], torch: TorchSchema) -> Iterator[str]:
    owners = {definition.name: definition for definition, _ in found}
    for name, definition in owners.items():
        body = "values" if definition.kind is Kind.ENUM else "fields"
        lines = [f"# At the end of `{body}` of {definition.kind.value} {name}, before fields of ours:"]
        lines += _left_to_say(definition)
        for owner, member in found:
            if owner.name == name:
                lines += _entry(member, torch)
        yield "\n".join(lines)


def _left_to_say(definition: TypeDef) -> list[str]:
    """What PyTorch's files do not have of an enum's values."""
    keys = ("torch", "c10", "bits")
    known = [key for key in keys if any(getattr(value, key) is not None for value in definition.values)]
    shown = ", ".join(known)
    return [f"# What stands for something in PyTorch gets {shown}, as others have them."] if known else []


def _entry(member: TorchMember, since: TorchSchema | None) -> list[str]:
    """A field or value as it stands in schema.yaml."""
    if not member.type:
        facts = [f"value: {member.number}"]
    else:
        facts = [f"id: {member.number}", f"type: {_as_text(member.type)}"]
    facts += [f'since: "{since.version}"'] if since is not None else []
    if member.default is not None:
        is_text = member.default not in ("true", "false", "null")
        facts.append(f"default: {_as_text(member.default) if is_text else member.default}")
    return [f"      {_as_text(member.name)}:", *(f"        {fact}" for fact in (*facts, f"doc: {_DOC}"))]


def _as_text(name: str) -> str:
    """A name as YAML reads it as text, which takes `yes` for a boolean."""
    return json.dumps(name) if isinstance(yaml.safe_load(name), bool | None) else name


def _contradictions(schema: Schema, ours: dict[str, TypeDef], torch: TorchSchema) -> Iterator[str]:
    if schema.treespec_version != torch.treespec_version:
        yield f"treespec_version is {torch.treespec_version} in PyTorch, here {schema.treespec_version}"
    for name, definition in ours.items():
        theirs = torch.types.get(name)
        if theirs is None:
            yield f"{definition.kind.value} {name} is not in PyTorch"
        elif theirs.kind is not definition.kind:
            there, here = with_article(theirs.kind.value), with_article(definition.kind.value)
            yield f"{name} is {there} in PyTorch, here {here}"
        else:
            yield from _member_contradictions(definition, theirs)


def _member_contradictions(definition: TypeDef, theirs: TorchType) -> Iterator[str]:
    there = {member.name: member for member in theirs.members}
    for mine in _of_pytorch(definition):
        name = f"{definition.name}.{mine.name}"
        member = there.get(mine.name)
        if member is None:
            yield f"{name} is not in PyTorch"
            continue
        for what, theirs_is, ours_is in (
            ("id" if isinstance(mine, Field) else "value", member.number, number(mine)),
            ("type", member.type, _spelled(mine)),
            ("default", member.default, _default(mine)),
        ):
            if theirs_is != ours_is:
                yield f"the {what} of {name} is {_shown(theirs_is)} in PyTorch, here {_shown(ours_is)}"


def _of_pytorch(definition: TypeDef) -> list[Field | EnumValue]:
    return [member for member in members(definition) if not member.own]


def _spelled(member: Field | EnumValue) -> str:
    if not isinstance(member, Field):
        return ""
    return ("optional " if member.optional else "") + str(member.type)


def _default(member: Field | EnumValue) -> str | None:
    if not isinstance(member, Field) or member.default is None:
        return None
    value = member.default.value
    if isinstance(value, tuple):
        return "{}" if isinstance(member.type, MapType) else "[]"
    if isinstance(member.type, NamedType) and isinstance(value, str):
        return value  # of an enum
    return json.dumps(value, ensure_ascii=False)


def _shown(value: str | int | None) -> str:
    return "none" if value is None else f"`{value}`"
