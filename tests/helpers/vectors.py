"""The conformance vectors of tests/data/vectors: trees as JSON and as Thrift, for readers in any language.

    python -m tests.helpers.vectors

writes them anew, as the schema and the Python codecs have them; a test tells when that is due. Each type has
a file TYPE.jsonl, a line a tree: `{"json": ..., "compact": "hex"}`. newer.jsonl has documents of a newer
writer, each with what is left once the unknown fields have been dropped; where a union's member is unknown
nothing is, and a reader must refuse the document or show that it does not know the member.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from pt2wire.codegen.model import Kind
from pt2wire.generated import json_codec, thrift_codec, types

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


class Newer(NamedTuple):
    """A document with additions that this schema does not know, and both encodings of what is known of it."""

    type: str
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
    rows = [_newer_row(*row) for row in _NEWER]
    rows += [
        {"type": type_, "json": tree, "compact": data, "kept": None} for type_, tree, data in _NEWER_MEMBERS
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
        yield Newer(row["type"], row["json"], bytes.fromhex(row["compact"]), kept)


#: Trees, and a field more for each: in JSON by name, in compact bytes before the end of the struct.
_NEWER = (
    (types.Device("cpu", None), {"future": 1}, "068010" + "02"),  # 1024: i64 1
    (types.Device("cuda", 1), {"future": True}, "018010"),  # bool
    (types.Device("cuda", 1), {"future": "ß"}, "088010" + "02c39f"),  # string
    (types.Device("cuda", 1), {"future": 1.5}, "078010" + "000000000000f83f"),  # double
    (types.Device("cuda", 1), {"future": [1, 2]}, "098010" + "260204"),  # list<i64>
    (
        types.Device("cuda", 1),
        {"future": {"k": []}},
        "0b8010" + "0189" + "016b" + "06",
    ),  # map<string, list<i64>>
    (
        types.Device("cuda", 1),
        {"future": {"a": {"b": 1}}},
        "0c8010" + "1c" + "160200" + "00",
    ),  # struct in struct
    (types.SchemaVersion(8, 21), {"patch": 3}, "068010" + "06"),
)

#: Unions with a member that this schema does not know, alone and inside of known ones.
_NEWER_MEMBERS = (
    ("Argument", {"as_future": 1}, "06801002" + "00"),
    ("SymInt", {"as_future": {"a": "b"}}, "0c8010" + "18016200" + "00"),
    ("NamedArgument", {"name": "x", "arg": {"as_future": 1}, "kind": None}, "a80178" + "ac" + "068010020000"),
    ("Argument", {"as_sym_ints": [{"as_future": True}]}, "09f001" + "1c" + "018010" + "00" + "00"),
)


def _newer_row(tree: Any, addition: dict[str, Any], field: str) -> dict[str, Any]:
    kept = {"json": json.loads(json_codec.encode(tree)), "compact": thrift_codec.encode(tree).hex()}
    return {
        "type": type(tree).__name__,
        "json": {**kept["json"], **addition},
        "compact": f"{kept['compact'][:-2]}{field}00",
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
