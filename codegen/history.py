"""A schema as it was at an earlier version."""

from __future__ import annotations

from dataclasses import replace

from .model import Schema, TypeDef, Version


def as_of(schema: Schema, version: Version) -> Schema:
    """A schema without what PyTorch has added after a version. What is ours stays; the digest stays, too.

    Example:
        >>> from pathlib import Path
        >>> from pt2wire.codegen.resolve import load_schema
        >>> schema = load_schema(Path(__file__).parent.parent / "generated/schema.yaml")
        >>> [field.name for field in as_of(schema, Version(8, 8)).types["NamedArgument"].fields]
        ['name', 'arg', 'kind']
        >>> [field.name for field in as_of(schema, Version(8, 2)).types["NamedArgument"].fields]
        ['name', 'arg']
    """
    types = {
        name: _type_as_of(definition, version)
        for name, definition in schema.types.items()
        if definition.since is None or definition.since <= version
    }
    return replace(
        schema,
        version=version,
        log=tuple(line for line in schema.log if line.version <= version),
        types=types,
        ordered=tuple(types[definition.name] for definition in schema.ordered if definition.name in types),
    )


def _type_as_of(definition: TypeDef, version: Version) -> TypeDef:
    return replace(
        definition,
        fields=tuple(item for item in definition.fields if item.since is None or item.since <= version),
        values=tuple(item for item in definition.values if item.since is None or item.since <= version),
    )
