"""Stored artifacts: for each version and revision, files that every later one has to read.

`python -m tests.helpers.artifacts` writes those of the current version and revision, below
tests/data/artifacts/VERSION-rREVISION: a compendium (every type, union member and enum value) in both
encodings, the schema itself, and in `future/` files of schemas yet to come, one per kind of change.
"""

from __future__ import annotations

import argparse
import importlib
import json
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple

from pt2wire.codegen.model import Schema
from pt2wire.codegen.resolve import load_schema
from pt2wire.generated import types

from .compendium import documents, least
from .schema_edits import Bindings, Edit, adoptable, bindings, free_id, next_minor, removable
from .schemas import ROOT, SCHEMA

COMMAND = "python -m tests.helpers.artifacts"
ARTIFACTS = ROOT / "tests/data/artifacts"
#: Suffix of a file -> the generated module that reads and writes it.
FORMS = {".json": "json_codec", ".compact": "thrift_codec"}


class Future(NamedTuple):
    """A change that a later schema may make.

    Attributes:
        edit: Makes it in the schema's text, with the bump that it demands.
        use: Puts what is new into a program, given the changed schema and its types.
        forms: The encodings that can hold it.
    """

    edit: Callable[[Edit], Edit]
    use: Callable[[Any, Schema, Any], None]
    forms: Collection[str] = tuple(FORMS)

    def files(self, name: str) -> list[str]:
        """What its files are called."""
        return [name + suffix for suffix in self.forms]


def folder(schema: Schema) -> Path:
    """Where the artifacts of a version and revision lie."""
    return ARTIFACTS / f"{schema.version}-r{schema.revision}"


def compendium_paths(place: Path) -> list[Path]:
    """The files of a compendium in a folder of stored artifacts."""
    return sorted(path for path in place.glob("*.*") if path.suffix in FORMS)


def add_field(edit: Edit) -> Edit:
    """Adds an optional field of PyTorch's to Node."""
    number, since = free_id(edit.schema, "Node"), next_minor(edit.before)
    line = (
        f'from_future: {{id: {number}, type: optional string, since: "{since}", default: null, doc: A text.}}'
    )
    return edit.append("Node", line)


def add_member(edit: Edit) -> Edit:
    """Adds a member to Argument."""
    number, since = free_id(edit.schema, "Argument"), next_minor(edit.before)
    return edit.append(
        "Argument", f'as_from_future: {{id: {number}, type: list<SymInt>, since: "{since}", doc: Sizes.}}'
    )


def add_value(edit: Edit) -> Edit:
    """Adds a value to ScalarType."""
    number = max(value.value for value in edit.schema.types["ScalarType"].values) + 1
    return edit.append(
        "ScalarType", f'FROM_FUTURE: {{value: {number}, since: "{next_minor(edit.before)}", doc: Nibbles.}}'
    )


def add_own_field(edit: Edit) -> Edit:
    """Adds a field of ours to ExportedProgram."""
    number, since = free_id(edit.schema, "ExportedProgram", own=True), edit.before.revision + 1
    entry = f"id: {number}, type: optional string, since_revision: {since}, default: null, doc: A text."
    return edit.append("ExportedProgram", f"from_future: {{{entry}}}")


def adopt_name(edit: Edit) -> Edit:
    """Lets PyTorch add a field under the name of one of ours, which gives way."""
    name, number, since = adoptable(edit.before).name, free_id(edit.schema, "Node"), next_minor(edit.before)
    entry = f'id: {number}, type: optional i64, since: "{since}", default: null, doc: A number.'
    return edit.rename("Node", name, f"own_{name}").append("Node", f"{name}: {{{entry}}}")


def remove_field(edit: Edit) -> Edit:
    """Removes a field from ExportedProgram."""
    return edit.remove("ExportedProgram", removable(edit.before))


def use_field(program: Any, schema: Schema, types: Any) -> None:
    program.graph_module.graph.nodes[0].from_future = "from the future"


def use_member(program: Any, schema: Schema, types: Any) -> None:
    argument = types.Argument.create(as_from_future=[types.SymInt.create(as_int=7)])
    program.graph_module.graph.nodes[0].inputs[0].arg = argument


def use_value(program: Any, schema: Schema, types: Any) -> None:
    argument = types.Argument.create(as_scalar_type=types.ScalarType.FROM_FUTURE)
    program.graph_module.graph.nodes[0].inputs[0].arg = argument


def use_own_field(program: Any, schema: Schema, types: Any) -> None:
    program.from_future = "from the future"
    program.writer = types.Writer("pt2wire", "9.9", schema.revision)


def use_adopted_name(program: Any, schema: Schema, types: Any) -> None:
    """A number in PyTorch's field, a list in ours."""
    node, name = program.graph_module.graph.nodes[0], adoptable(Edit().before).name
    setattr(node, name, 7)
    setattr(node, f"own_{name}", [])
    program.writer = types.Writer("pt2wire", "9.9", schema.revision)


def use_longer_integer(program: Any, schema: Schema, types: Any) -> None:
    device = types.Device("cuda", 1 << 70)
    program.graph_module.graph.nodes[0].inputs[0].arg = types.Argument.create(as_device=device)


def use_nothing(program: Any, schema: Schema, types: Any) -> None:
    """What a newer major version holds does not matter: readers go by its number."""


FUTURES = {
    "new-field": Future(lambda edit: add_field(edit.minor()), use_field),
    "new-union-member": Future(lambda edit: add_member(edit.minor()), use_member),
    "new-enum-value": Future(lambda edit: add_value(edit.minor()), use_value),
    "new-own-field": Future(lambda edit: add_own_field(edit.revision()), use_own_field),
    "longer-integer": Future(
        lambda edit: edit.minor().widen("Device", "index"), use_longer_integer, forms=(".json",)
    ),
    "adopted-name": Future(lambda edit: adopt_name(edit.minor().revision()), use_adopted_name),
    "newer-major": Future(lambda edit: remove_field(edit.major()), use_nothing),
}


def compendium_files(bound: Bindings) -> dict[str, bytes]:
    """The compendium of a schema in both encodings: file name -> content."""
    trees = documents(bound.schema, bound.types)
    return {
        f"{name}{suffix}": bound.codec(module).encode(tree)
        for name, tree in trees.items()
        for suffix, module in FORMS.items()
    }


def small_program(schema: Schema, types: Any) -> Any:
    """A program of one node with one argument, in the classes of a schema."""
    program = least(schema, types, "ExportedProgram")
    node = least(schema, types, "Node")
    node.inputs.append(least(schema, types, "NamedArgument"))
    program.graph_module.graph.nodes.append(node)
    program.schema_version = types.SchemaVersion(schema.version.major, schema.version.minor)
    return program


def future_files(name: str) -> dict[str, bytes]:
    """The files of one future, written by what is generated from its schema."""
    with tempfile.TemporaryDirectory() as place:
        future = FUTURES[name]
        bound = bindings(Path(place), future.edit(Edit()))
        program = small_program(bound.schema, bound.types)
        future.use(program, bound.schema, bound.types)
        return {name + suffix: bound.codec(FORMS[suffix]).encode(program) for suffix in future.forms}


def complaint(schema: Schema, files: dict[str, bytes]) -> str | None:
    """What is wrong with the stored artifacts of a version and revision, and the command that mends it."""
    numbers = f"version {schema.version}, revision {schema.revision}"
    stored = {path.name: path.read_bytes() for path in compendium_paths(folder(schema))}
    if not stored:
        return f"There are no stored artifacts of {numbers}. Make and commit them: {COMMAND}"
    if stored != files:
        return (
            f"The stored artifacts of {numbers} differ from what is written now. If that is meant: {COMMAND}"
        )
    return None


def check_older(path: Path, bound: Bindings) -> None:
    """A file of an older version says the same to newer bindings; what came since has its default."""
    tree, codec = decoded(path, bound), bound.codec(FORMS[path.suffix])
    assert codec.decode(type(tree), codec.encode(tree)) == tree
    if path.suffix == ".json":
        assert _contains(codec.to_plain(tree), json.loads(path.read_bytes()))
    else:
        assert tree == decoded(path.with_suffix(".json"), bound)


def decoded(path: Path, bound: Bindings) -> Any:
    """The tree in a stored file of a compendium."""
    return bound.codec(FORMS[path.suffix]).decode(getattr(bound.types, path.stem), path.read_bytes())


def _contains(newer: Any, older: Any) -> bool:
    """Whether everything that stands in the older JSON stands in the newer."""
    if isinstance(older, dict):
        return all(key in newer and _contains(newer[key], value) for key, value in older.items())
    if isinstance(older, list):
        return len(newer) == len(older) and all(map(_contains, newer, older))
    return bool(newer == older)


def current() -> Bindings:
    """The bindings that are installed."""
    return Bindings(load_schema(SCHEMA), importlib.import_module(types.__name__.rpartition(".")[0]))


def main() -> None:
    """Writes the artifacts of the current version and revision."""
    argparse.ArgumentParser(prog=COMMAND, description=main.__doc__).parse_args()
    bound = current()
    files = {**compendium_files(bound), "schema.yaml": SCHEMA.read_bytes()}
    for name in FUTURES:
        files.update({f"future/{file}": content for file, content in future_files(name).items()})
    for name, content in files.items():
        path = folder(bound.schema) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
