"""The conformance vectors of tests/data/vectors: trees as JSON and as Thrift, for readers in any language.

    python -m tests.helpers.vectors

writes them anew, as the schema and the Python codecs have them; a test tells when that is due. Each type has
a file TYPE.jsonl, a line a tree: `{"json": ..., "compact": "hex"}`. newer.jsonl has documents of a newer
writer, with `what` is new and what is left (`kept`) once unknown fields have been dropped; where a union's
member or an enum's value is unknown nothing is, and a reader must refuse the document or keep what it does
not know, never lose it. known_gaps.yaml lists what other readers do instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml
from pt2wire.codegen.model import Kind
from pt2wire.generated import json_codec, thrift_codec, types

from . import compact
from .cpp import ROOT, schema
from .cpp_trees import trees

FOLDER = ROOT / "tests" / "data" / "vectors"

#: Longer ones say nothing that shorter ones do not, but for one list, one map and one text.
_LONGEST = 1000
_LONG = (
    types.Argument.create(as_ints=[1] * 300),
    types.Argument.create(as_string="x" * 20000),
    types.Node("op", [], [], {f"key {i}": "" for i in range(300)}),
)


class Vector(NamedTuple):
    """A tree of a type, in both encodings: the JSON as parsed, the compact bytes."""

    type: str
    json: Any
    compact: bytes


class Gap(NamedTuple):
    """What a reader does with vectors of some kind instead of writing them again as they were."""

    reader: str
    vectors: str
    outcome: str
    reason: str


class Newer(NamedTuple):
    """A document with an addition that this schema does not know, and what is left without it."""

    type: str
    what: str
    json: Any
    compact: bytes
    kept: Vector | None


def files() -> dict[str, str]:
    """All vectors as they should be: file name -> content."""
    made: dict[str, list[str]] = {t.name: [] for t in schema().ordered if t.kind is not Kind.ENUM}
    for tree in (*trees(), *_LONG):
        data = thrift_codec.encode(tree)
        if len(data) <= _LONGEST or tree in _LONG:
            row = {"json": json.loads(json_codec.encode(tree)), "compact": data.hex()}
            made[type(tree).__name__].append(_line(row))
    content = {f"{name}.jsonl": "".join(dict.fromkeys(lines)) for name, lines in made.items()}
    rows = [_newer_row(*row) for row in _NEWER_FIELDS]
    rows += [
        {"type": type_, "what": what, "json": tree, "compact": data.hex(), "kept": None}
        for type_, what, tree, data in _NEWER_VALUES
    ]
    content["newer.jsonl"] = "".join(map(_line, rows))
    return content


def vectors() -> Iterator[Vector]:
    """Those in the repository."""
    for path in sorted(FOLDER.glob("*.jsonl")):
        if path.name != "newer.jsonl":
            for line in path.read_text("utf-8").splitlines():
                row = json.loads(line)
                yield Vector(path.stem, row["json"], bytes.fromhex(row["compact"]))


def newer() -> Iterator[Newer]:
    """Those of newer writers."""
    for line in (FOLDER / "newer.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        kept = row["kept"] and Vector(row["type"], row["kept"]["json"], bytes.fromhex(row["kept"]["compact"]))
        yield Newer(row["type"], row["what"], row["json"], bytes.fromhex(row["compact"]), kept)


def gaps() -> list[Gap]:
    """The known ones."""
    return [Gap(**row) for row in yaml.safe_load((FOLDER / "known_gaps.yaml").read_text("utf-8"))]


def _id(type_: str, field: str) -> int:
    return next(f.id for f in schema().types[type_].fields if f.name == field)


_CPU = types.Device("cpu", None)
_LEVELS = {"a": {"b": 1}}
_INNER = compact.struct(compact.field(1, compact.I64, compact.number(1)))

#: Trees with a field more, of every type that Thrift has: in JSON by name, in compact bytes at the end.
_NEWER_FIELDS: tuple[tuple[Any, str, dict[str, Any], int, bytes], ...] = (
    (_CPU, "bool field: true", {"future": True}, compact.TRUE, b""),
    (_CPU, "bool field: false", {"future": False}, compact.FALSE, b""),
    (_CPU, "i8 field", {"future": -1}, compact.I8, b"\xff"),
    (_CPU, "i16 field", {"future": -300}, compact.I16, compact.number(-300)),
    (_CPU, "i32 field", {"future": 70000}, compact.I32, compact.number(70000)),
    (_CPU, "i64 field", {"future": 2**63 - 1}, compact.I64, compact.number(2**63 - 1)),
    (_CPU, "double field", {"future": 1.5}, compact.DOUBLE, bytes.fromhex("000000000000f83f")),
    (_CPU, "text field", {"future": "ß"}, compact.STRING, compact.string("ß")),
    (_CPU, "binary field", {"future": "/w=="}, compact.STRING, compact.string(b"\xff")),
    (
        _CPU,
        "list field",
        {"future": [1, 2]},
        compact.LIST,
        compact.list_(compact.I64, compact.number(1), compact.number(2)),
    ),
    (
        _CPU,
        "list field of bools",
        {"future": [True, False]},
        compact.LIST,
        compact.list_(compact.TRUE, b"\1", b"\2"),
    ),
    (
        _CPU,
        "list field of 300",
        {"future": [0] * 300},
        compact.LIST,
        compact.list_(compact.I8, *[b"\0"] * 300),
    ),
    (_CPU, "set field", {"future": ["x"]}, compact.SET, compact.list_(compact.STRING, compact.string("x"))),
    (
        _CPU,
        "map field",
        {"future": {"k": []}},
        compact.MAP,
        compact.map_(compact.STRING, compact.LIST, compact.string("k") + compact.list_(compact.I64)),
    ),
    (
        _CPU,
        "map field without entries",
        {"future": {}},
        compact.MAP,
        compact.map_(compact.STRING, compact.I64),
    ),
    (
        _CPU,
        "struct field",
        {"future": _LEVELS},
        compact.STRUCT,
        compact.struct(compact.field(1, compact.STRUCT, _INNER)),
    ),
    (
        _CPU,
        "uuid field",
        {"future": "00112233-4455-6677-8899-aabbccddeeff"},
        compact.UUID,
        bytes.fromhex("00112233445566778899aabbccddeeff"),
    ),
    (types.Device("cuda", 1), "i64 field", {"future": 1}, compact.I64, compact.number(1)),
    (types.SchemaVersion(8, 21), "i64 field", {"patch": 3}, compact.I64, compact.number(3)),
)

_NEW_ID = 1024
_NEW_MEMBER = compact.struct(compact.field(_NEW_ID, compact.I64, compact.number(1)))

#: Members of unions and values of enums that this schema does not know, alone and inside of known ones.
_NEWER_VALUES: tuple[tuple[str, str, Any, bytes], ...] = (
    ("Argument", "member", {"as_future": 1}, _NEW_MEMBER),
    (
        "SymInt",
        "member",
        {"as_future": _LEVELS},
        compact.struct(compact.field(_NEW_ID, compact.STRUCT, _INNER)),
    ),
    (
        "NamedArgument",
        "member",
        {"name": "x", "arg": {"as_future": 1}, "kind": None},
        compact.struct(
            compact.field(10, compact.STRING, compact.string("x")),
            compact.field(20, compact.STRUCT, _NEW_MEMBER),
        ),
    ),
    (
        "Argument",
        "member",
        {"as_sym_ints": [{"as_future": True}]},
        compact.struct(
            compact.field(
                _id("Argument", "as_sym_ints"),
                compact.LIST,
                compact.list_(compact.STRUCT, compact.struct(compact.field(_NEW_ID, compact.TRUE))),
            )
        ),
    ),
    (
        "Argument",
        "enum value",
        {"as_scalar_type": 99},
        compact.struct(compact.field(_id("Argument", "as_scalar_type"), compact.I32, compact.number(99))),
    ),
)


def _newer_row(tree: Any, what: str, addition: dict[str, Any], wire: int, payload: bytes) -> dict[str, Any]:
    kept = {"json": json.loads(json_codec.encode(tree)), "compact": thrift_codec.encode(tree).hex()}
    end = compact.struct(compact.field(_NEW_ID, wire, payload))
    return {
        "type": type(tree).__name__,
        "what": what,
        "json": {**kept["json"], **addition},
        "compact": kept["compact"][:-2] + end.hex(),
        "kept": kept,
    }


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"


def main() -> None:
    """Writes all files, and removes those of types that are gone."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    content = files()
    for path in FOLDER.glob("*.jsonl"):
        if path.name not in content:
            path.unlink()
    for name, text in content.items():
        (FOLDER / name).write_text(text, "utf-8")
    print(f"{FOLDER.relative_to(ROOT)}: {len(content)} files, {sum(map(len, content.values()))} characters")


if __name__ == "__main__":
    main()
