"""Structs with fields in every order: codecs keep values, and JSON has the format's own fields first."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pt2wire.codegen.cli import main
from pt2wire.codegen.resolve import load_schema

from .helpers.compendium import variants
from .helpers.schema_edits import Bindings, import_generated
from .helpers.schema_random import base, spelled

#: What a field is to readers, as YAML: of the format, or an extension of it.
FIELDS = {
    "required": "id: {id}, type: '{type}'",
    "required_optional": "id: {id}, type: 'optional {type}'",
    "optional": "id: {id}, type: 'optional {type}', default: null",
    "defaulted": "id: {id}, type: i64, default: 7",
    "extension": "id: 1{id:03}, type: 'optional {type}', default: null, since_revision: 1",
}
DEFAULTED = {"optional", "defaulted", "extension"}
TYPES = (
    "i64",
    "bool",
    "string",
    "binary",
    "Kind",
    "Choice",
    "Leaf",
    "list<i64>",
    "list<Leaf>",
    "map<string, Kind>",
)


def orders(own: bool) -> Iterator[tuple[str, ...]]:
    """The fields of structs of up to three, in every order that constructors can take."""
    kinds = [kind for kind in FIELDS if not own or kind != "extension"]
    for count in range(1, 4):
        for order in itertools.product(kinds, repeat=count):
            if sorted(order, key=DEFAULTED.__contains__) == list(order):
                yield order


def structs(seed: int) -> dict[str, tuple[str, bool, tuple[str, ...]]]:
    """By name: a struct's YAML, whether it is an extension as a whole, and its fields' kinds."""
    r, made = random.Random(seed), {}
    for own in (False, True):
        for number, order in enumerate(orders(own)):
            name = f"{'Mine' if own else 'Theirs'}{number}"
            lines = [f"  {name}:", "    kind: struct", "    doc: d", "    fields:"]
            lines.insert(2, "    since_revision: 1" if own else '    since: "8.2"')
            for index, kind in enumerate(order):
                field = FIELDS[kind].format(id=index + 1, type=r.choice(TYPES))
                lines.append(f"      {kind}_{index}: {{{field}, doc: d}}")
            made[name] = ("\n".join(lines), own, order)
    return made


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.wide) for seed in range(1, 6))])
def test_fields_in_every_order_are_kept_and_written_in_theirs(tmp_path: Path, seed: int) -> None:
    made, path = structs(seed), tmp_path / "schema.yaml"
    path.write_text(spelled(base()) + "\n" + "\n".join(text for text, _, _ in made.values()) + "\n")
    assert main(["generate", "--schema", str(path), "--out", str(tmp_path / "made")]) == 0
    bound = Bindings(load_schema(path), import_generated(tmp_path / "made"))
    as_json, as_thrift = bound.codec("json_codec"), bound.codec("thrift_codec")
    for name, (text, own, order) in made.items():
        names = [f"{kind}_{index}" for index, kind in enumerate(order)]
        left_out = [field for field in names if "extension" in field or (own and "optional" in field)]
        for tree in trees(bound, name):
            data = as_json.encode(tree)
            assert as_json.decode(type(tree), data) == tree, (text, data)
            written = [field for field in names if field not in left_out]
            written += [field for field in left_out if getattr(tree, field) is not None]
            assert list(json.loads(data)) == written, (text, data)
            assert as_json.from_plain(type(tree), as_json.to_plain(tree)) == tree
            assert as_thrift.decode(type(tree), as_thrift.encode(tree)) == tree, text


def trees(bound: Bindings, name: str) -> Iterator[Any]:
    """Structs with each set of optional fields unset."""
    fields = bound.schema.types[name].fields
    (full, *_) = variants(bound.schema, bound.types, name)
    choices = [(False, True) if field.optional else (True,) for field in fields]
    for chosen in itertools.product(*choices):
        pairs = zip(fields, chosen, strict=True)
        yield type(full)(**{field.name: getattr(full, field.name) if on else None for field, on in pairs})
