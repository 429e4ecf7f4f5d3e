"""Editing schema.yaml as its keeper does, and using what is generated from the result."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Self

from pt2wire.codegen.model import Field, ListType, Schema, Version
from pt2wire.codegen.outputs import render_all, write_files
from pt2wire.codegen.resolve import parse_schema

from .schemas import SCHEMA

_numbers = itertools.count()


class Edit:
    """The text of a schema, changed step by step.

    Attributes:
        text: The text so far.
        number: The version that the change leads to, once `version` has been called.
    """

    def __init__(self, text: str | None = None) -> None:
        self.text = SCHEMA.read_text(encoding="utf-8") if text is None else text
        self.before = parse_schema(self.text.encode(), "schema.yaml")

    @property
    def schema(self) -> Schema:
        """The schema that the text is by now."""
        return parse_schema(self.text.encode(), "schema.yaml")

    def replace(self, old: str, new: str) -> Self:
        assert self.text.count(old) == 1, f"{old!r} is there {self.text.count(old)} times"
        self.text = self.text.replace(old, new)
        return self

    def version(self, version: Version, *, oldest: Version | None = None) -> Self:
        """Sets the version, and adds a line to the log."""
        self.replace(f'\nversion: "{self.before.version}"\n', f'\nversion: "{version}"\n')
        if oldest is not None:
            found = self.before.oldest_version
            self.replace(f'\noldest_version: "{found}"\n', f'\noldest_version: "{oldest}"\n')
        return self.replace(
            "\ntypes:\n", f'  - version: "{version}"\n    torch: "9.9.0"\n    note: Next.\n\ntypes:\n'
        )

    def minor(self) -> Self:
        """PyTorch's next minor version."""
        return self.version(next_minor(self.before))

    def major(self) -> Self:
        """PyTorch's next major version."""
        next_major = Version(self.before.version.major + 1, 0)
        return self.version(next_major, oldest=next_major)

    def revision(self) -> Self:
        """Our next revision."""
        revision = self.before.revision
        return self.replace(f"\nrevision: {revision}\n", f"\nrevision: {revision + 1}\n")

    def append(self, type_name: str, entry: str) -> Self:
        """Adds a field, member or value at the end of a type; `entry` is YAML that starts at column 1."""
        lines = self.text.splitlines(keepends=True)
        types = list(self.schema.types.values())
        index = next(i for i, definition in enumerate(types) if definition.name == type_name)
        end = types[index + 1].position.line - 1 if index + 1 < len(types) else len(lines)
        while not lines[end - 1].strip():
            end -= 1
        lines[end:end] = [f"      {line}\n" for line in entry.splitlines()]
        self.text = "".join(lines)
        return self

    def rename(self, type_name: str, field_name: str, new_name: str) -> Self:
        """Renames a field where it is defined."""
        field = next(field for field in self.schema.types[type_name].fields if field.name == field_name)
        lines = self.text.splitlines(keepends=True)
        lines[field.position.line - 1] = lines[field.position.line - 1].replace(field_name, new_name, 1)
        self.text = "".join(lines)
        return self

    def widen(self, type_name: str, field_name: str) -> Self:
        """Lets JSON hold more than 64 bits in a field of `i64`."""
        start = self.text.index(f"\n  {type_name}:\n")
        start = self.text.index(f"\n      {field_name}:\n", start)
        end = self.text.index("doc:", start)
        widened = self.text[start:end].replace("i64", "integer")
        assert widened != self.text[start:end], f"{type_name}.{field_name} is no i64"
        self.text = self.text[:start] + widened + self.text[end:]
        return self

    def remove(self, type_name: str, field_name: str) -> Self:
        """Removes a field and reserves its id and name."""
        definition = self.schema.types[type_name]
        index = next(i for i, field in enumerate(definition.fields) if field.name == field_name)
        field, following = definition.fields[index : index + 2]
        lines = self.text.splitlines(keepends=True)
        del lines[field.position.line - 1 : following.position.line - 1]
        ids = ", ".join(map(str, (*definition.reserved_ids, field.id)))
        names = ", ".join((*definition.reserved_names, field.name))
        start = definition.position.line
        if definition.reserved_ids:
            start = next(number for number in range(start, len(lines)) if "    reserved: {" in lines[number])
            del lines[start]
        lines.insert(start, f"    reserved: {{ids: [{ids}], names: [{names}]}}\n")
        self.text = "".join(lines)
        return self


def next_minor(schema: Schema) -> Version:
    return Version(schema.version.major, schema.version.minor + 1)


def removable(schema: Schema) -> str:
    """A field of ExportedProgram that a new major version may lack: readers do not demand it."""
    fields = schema.types["ExportedProgram"].fields
    return next(field.name for field in fields if field.default and not field.own)


def adoptable(schema: Schema) -> Field:
    """A field of ours in Node, a list, whose name PyTorch may come to use."""
    return next(
        field for field in schema.types["Node"].fields if field.own and isinstance(field.type, ListType)
    )


def free_id(schema: Schema, type_name: str, *, own: bool = False) -> int:
    """An id that no field of a type has: below 1000 for PyTorch's, from there on for ours."""
    ids = [field.id for field in schema.types[type_name].fields if (field.id >= 1000) is own]
    return (max(ids, default=990) // 10 + 1) * 10 if not own else max(ids, default=999) + 1


class Bindings(NamedTuple):
    """Python code generated from a schema, imported under a name of its own."""

    schema: Schema
    package: ModuleType

    @property
    def types(self) -> Any:
        return self.codec("types")

    def codec(self, module: str) -> Any:
        """A generated module: `json_codec`, `thrift_codec`."""
        return importlib.import_module(f"{self.package.__name__}.{module}")


def bindings(folder: Path, edit: Edit) -> Bindings:
    """Generates all code of an edited schema below a folder, and imports the Python of it."""
    source = edit.text.encode()
    schema = parse_schema(source, "schema.yaml")
    (folder / "schema.yaml").write_bytes(source)
    out = folder / "generated"
    write_files(render_all(schema, source), out)
    return Bindings(schema, import_generated(out))


def import_generated(out: Path) -> ModuleType:
    """Imports generated Python from a folder, beside the package that is installed."""
    name = f"generated_{next(_numbers)}"
    place = [str(out)]
    spec = importlib.util.spec_from_file_location(name, out / "__init__.py", submodule_search_locations=place)
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)
    return package
