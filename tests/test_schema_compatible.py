"""What `breaking` says of a change is what happens: random changes, documents across them, both ways."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from pt2wire.codegen import incompatible
from pt2wire.codegen.changes import compare
from pt2wire.codegen.faults import Level, SchemaError
from pt2wire.codegen.lint import lint
from pt2wire.codegen.model import Kind, NamedType
from pt2wire.codegen.outputs import render_all, write_files
from pt2wire.codegen.resolve import parse_schema

from .helpers.schema_edits import Bindings, import_generated
from .helpers.schema_random import base, changed_at_random, contains, said, samples, spelled, without_defaults

#: The rules on whether newer code reads older documents; those on whether older code reads newer ones.
BACKWARD = {
    *("type-removed", "kind-changed", "field-removed", "member-removed", "value-removed", "id-changed"),
    *("value-changed", "id-reused", "type-changed", "required-added", "made-required", "default-changed"),
    "made-optional",  # of a field that had a default, which an older document may lack
}


def bound(folder: Path, text: str) -> Bindings | None:
    """The Python generated from a schema; None if it cannot be."""
    try:
        schema = parse_schema(text.encode(), "schema.yaml")
    except SchemaError:
        return None
    if any(finding.level is not Level.STYLE for finding in lint(schema)):
        return None
    files = render_all(schema, text.encode())
    write_files({path: content for path, content in files.items() if path.endswith(".py")}, folder)
    made = Bindings(schema, import_generated(folder))
    for module in ("json_codec", "thrift_codec"):
        made.codec(module)
    return made


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Bindings:
    made = bound(tmp_path_factory.mktemp("before"), spelled(base()))
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("seed", "count"), [(0, 25), *(pytest.param(seed, 100, marks=pytest.mark.wide) for seed in range(1, 9))]
)
def test_documents_are_read_across_a_change_if_and_only_if_it_breaks_nothing(
    before: Bindings, tmp_path: Path, seed: int, count: int
) -> None:
    r = random.Random(seed)
    tried = 0
    while tried < count:
        text = spelled(changed_at_random(base(), r))
        after = bound(tmp_path / f"made_{tried}", text)
        if after is None:
            continue
        tried += 1
        found = defaultdict(set)
        for rule in incompatible.RULES:
            if any(True for _ in rule.check(before.schema, after.schema)):
                found[rule.level].add(rule.id)
        lost = misread(before, after)
        json_lost = lost["json"] or lost["without defaults"]
        assert not lost["thrift"] or found[Level.WIRE] & BACKWARD, (text, lost)
        assert not json_lost or found[Level.WIRE] & BACKWARD or found[Level.JSON], (text, lost)
        if found[Level.WIRE] & BACKWARD - {"made-optional"}:
            assert any(lost.values()), (text, found)
        if found[Level.JSON]:
            assert lost["json"], (text, found)
        if not found[Level.WIRE]:
            assert misread_by_older(before, after, json=not found[Level.JSON]) == [], text


def misread(before: Bindings, after: Bindings) -> dict[str, list[str]]:
    """What newer code says wrongly, or not at all, of older documents in each form."""
    names = {old.name: new.name for old, new in compare(before.schema, after.schema).renamed}
    lost: dict[str, list[str]] = {"thrift": [], "json": [], "without defaults": []}
    for ref, tree in samples(before):
        plain = before.codec("json_codec").to_plain(tree)
        sparse = without_defaults(before.schema, ref, plain)
        sparse_tree = before.codec("json_codec").from_plain(type(tree), sparse)
        forms: tuple[tuple[str, str, Any, Any], ...] = (
            ("thrift", "id", tree, before.codec("thrift_codec").encode(tree)),
            ("json", "name", tree, plain),
            ("without defaults", "name", sparse_tree, sparse),
        )
        for form, by, old, data in forms:
            definition = after.schema.types.get(names.get(ref.name, ref.name))
            if definition is None or definition.kind is Kind.ENUM:
                lost[form].append(f"{ref.name} has gone")
                continue
            cls = getattr(after.types, definition.name)
            codec = after.codec("thrift_codec" if by == "id" else "json_codec")
            try:
                new = (codec.decode if by == "id" else codec.from_plain)(cls, data)
            except after.package.CodecError as error:
                lost[form].append(f"{ref.name}: {error}")
                continue
            newer = said(after.schema, NamedType(definition.name, definition.kind), new, by=by)
            if not contains(newer, said(before.schema, ref, old, by=by)):
                lost[form].append(f"{old!r} is read as {new!r}")
    return lost


def misread_by_older(before: Bindings, after: Bindings, *, json: bool) -> list[str]:
    """What older code says wrongly of newer documents; refusing what is new by name is no fault."""
    names = {new.name: old.name for old, new in compare(before.schema, after.schema).renamed}
    wrong = []
    for ref, tree in samples(after):
        definition = before.schema.types.get(names.get(ref.name, ref.name))
        for codec, by in (("thrift_codec", "id"), ("json_codec", "name"))[: 2 if json else 1]:
            if definition is None:
                continue
            cls, data = getattr(before.types, definition.name), after.codec(codec).encode(tree)
            try:
                old = before.codec(codec).decode(cls, data, unknown=[])
            except before.package.CodecError as error:
                if "a newer version may have written it" not in str(error):
                    wrong.append(f"{ref.name}: {error}")
                continue
            older = said(before.schema, NamedType(definition.name, definition.kind), old, by=by)
            if not contains(said(after.schema, ref, tree, by=by), older):
                wrong.append(f"{tree!r} is read as {old!r}")
    return wrong
