"""Stored files of each version are read, and files of versions to come met as promised."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pt2wire
import pytest
from pt2wire.codegen.breaking import breaking
from pt2wire.codegen.faults import Level
from pt2wire.codegen.model import Kind, NamedType, Version
from pt2wire.codegen.resolve import load_schema
from pt2wire.generated import types

from .helpers import cpp
from .helpers.artifacts import (
    ARTIFACTS,
    FORMS,
    FUTURES,
    check_older,
    compendium_files,
    compendium_paths,
    complaint,
    current,
    decoded,
    folder,
)
from .helpers.compendium import all_of, documents, met
from .helpers.schema_edits import adoptable, free_id, next_minor

HEAD = current()
HERE = folder(HEAD.schema)
STORED = compendium_paths(HERE)
OLDER = [path for place in sorted(ARTIFACTS.iterdir()) if place != HERE for path in compendium_paths(place)]
#: Of those, programs of other major versions, which have to be refused.
FOREIGN = [
    path
    for path in OLDER
    if path.stem == "ExportedProgram" and not path.parent.name.startswith(f"{HEAD.schema.version.major}.")
]
READERS: dict[str, Callable[..., Any]] = {".json": pt2wire.from_json, ".compact": pt2wire.from_thrift}
NEXT = next_minor(HEAD.schema)


def test_the_current_version_and_revision_has_its_files() -> None:
    assert (problem := complaint(HEAD.schema, compendium_files(HEAD))) is None, problem
    futures = {path.name for path in (HERE / "future").iterdir()}
    assert futures == {file for name, future in FUTURES.items() for file in future.files(name)}


@pytest.mark.parametrize("path", sorted(ARTIFACTS.glob("*/schema.yaml")), ids=lambda path: path.parent.name)
def test_nothing_has_broken_since_a_version_was_stored(path: Path) -> None:
    """Within a major version; this also finds a change without its bump."""
    findings = [
        finding for finding in breaking(load_schema(path), HEAD.schema) if finding.level is not Level.STYLE
    ]
    assert findings == []


def test_they_hold_every_type_union_member_and_enum_value() -> None:
    trees = [decoded(path, HEAD) for path in STORED if path.suffix == ".compact"]
    assert all_of(HEAD.schema) - {name for tree in trees for name in met(HEAD.schema, tree)} == set()


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.name)
def test_head_reads_each_equal_and_rewrites_it_byte_for_byte(path: Path) -> None:
    tree = decoded(path, HEAD)
    assert tree == documents(HEAD.schema, types)[path.stem]
    assert HEAD.codec(FORMS[path.suffix]).encode(tree) == path.read_bytes()


@pytest.mark.skipif(not OLDER, reason="there is no older version yet")
@pytest.mark.parametrize("path", OLDER, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_head_reads_what_an_older_version_wrote(path: Path) -> None:
    if path not in FOREIGN:
        check_older(path, HEAD)
        return
    version = path.parent.name.partition("-")[0]
    with pytest.raises(pt2wire.DeserializeError, match=rf"expected format .*, found {version}|has no "):
        READERS[path.suffix](path.read_bytes())


def test_pytorch_reads_the_json_and_writes_the_same() -> None:
    serialize = pytest.importorskip("torch._export.serde.serialize")
    torch_schema = pytest.importorskip("torch._export.serde.schema")
    if Version(*torch_schema.SCHEMA_VERSION) < HEAD.schema.version:
        pytest.skip("the installed torch is older than schema.yaml")
    plain = json.loads((HERE / "ExportedProgram.json").read_bytes())
    tree = serialize._dict_to_dataclass(torch_schema.ExportedProgram, plain)
    again = json.loads(json.dumps(serialize._dataclass_to_dict(tree), cls=serialize.EnumEncoder))
    ours = decoded(HERE / "ExportedProgram.json", HEAD)
    drop_own(ours)
    assert again == HEAD.codec("json_codec").to_plain(ours)


def drop_own(tree: Any) -> None:
    """Unsets all fields of ours, which PyTorch ignores."""
    if isinstance(tree, list | dict):
        for item in tree.values() if isinstance(tree, dict) else tree:
            drop_own(item)
    elif isinstance(tree, types.Union):
        drop_own(tree.value)
    elif isinstance(tree, types.Struct):
        for field in HEAD.schema.types[type(tree).__name__].fields:
            if field.own:
                setattr(tree, field.name, None)
            drop_own(getattr(tree, field.name))


def test_the_cpp_header_reads_the_thrift_files_as_python_does() -> None:
    paths = [path for path in STORED if path.suffix == ".compact"]
    outcomes = cpp.answers(cpp.dumper(), [(path.stem, path.read_bytes()) for path in paths])
    dumps = [cpp.dump(decoded(path, HEAD), NamedType(path.stem, Kind.STRUCT)) for path in paths]
    assert [outcome.text.decode() for outcome in outcomes] == dumps


_ADOPTED = adoptable(HEAD.schema).name
_NEW_IN_NODE = f"graph_module.graph.nodes[0].#{free_id(HEAD.schema, 'Node')}"
# What is new in a future file, where our reader says it is.
SKIPPED = {
    "new-field.json": "graph_module.graph.nodes[0].from_future",
    "new-field.compact": _NEW_IN_NODE,
    "new-own-field.json": "from_future",
    "new-own-field.compact": f"#{free_id(HEAD.schema, 'ExportedProgram', own=True)}",
    "adopted-name.compact": _NEW_IN_NODE,
}
_ARG = "program:graph_module.graph.nodes[0].inputs[0].arg"
_HERE = f"in format {HEAD.schema.version}, revision {HEAD.schema.revision}; "
_UPGRADE = f". The file has format {NEXT}, this is {HEAD.schema.version}: upgrade pt2wire."
_MEMBER, _VALUE = free_id(HEAD.schema, "Argument"), max(types.ScalarType) + 1
_MAJOR = (
    f"program:schema_version: expected format {HEAD.schema.oldest_version} or a later ",
    f"{HEAD.schema.version.major}, found {HEAD.schema.version.major + 1}.0. Upgrade pt2wire.",
)
#: How the message begins and ends; between, Thrift's says at which byte.
REFUSED = {
    "new-union-member.json": (f"{_ARG}: Argument has no member 'as_from_future' {_HERE}", _UPGRADE),
    "new-union-member.compact": (f"{_ARG}: Argument has no member {_MEMBER} {_HERE}", _UPGRADE),
    "new-enum-value.json": (f"{_ARG}.as_scalar_type: ScalarType has no value {_VALUE} {_HERE}", _UPGRADE),
    "new-enum-value.compact": (f"{_ARG}.as_scalar_type: ScalarType has no value {_VALUE} {_HERE}", _UPGRADE),
    # What JSON knows by name alone, it takes for what the name was so far.
    "adopted-name.json": (
        f"program:graph_module.graph.nodes[0].{_ADOPTED}: expected an array, found int 7",
        _UPGRADE,
    ),
    "longer-integer.json": (f"{_ARG}.as_device.index: expected a 64-bit integer, found", _UPGRADE),
    "newer-major.json": _MAJOR,
    "newer-major.compact": _MAJOR,
}


@pytest.mark.parametrize("name", SKIPPED)
def test_an_unknown_field_of_a_newer_version_is_skipped_and_named(name: str) -> None:
    path = HERE / "future" / name
    read, data = READERS[path.suffix], path.read_bytes()
    unknown: list[str] = []
    tree = read(data, unknown=unknown)
    assert unknown == [SKIPPED[name]]
    assert tree.graph_module.graph.nodes[0].target == "text"
    with pytest.warns(UserWarning, match="1 unknown field was dropped, the first is ") as warned:
        assert read(data) == tree
    message = str(warned[0].message)
    assert message.endswith(SKIPPED[name])
    assert (f"this is {types.REVISION}:" in message) is (path.stem == "new-own-field")


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_skipped_is_refused_by_name(name: str) -> None:
    path = HERE / "future" / name
    with pytest.raises(pt2wire.DeserializeError) as raised:
        READERS[path.suffix](path.read_bytes())
    start, end = REFUSED[name]
    assert str(raised.value).startswith(start)
    assert str(raised.value).endswith(end)
    assert (", at byte " in str(raised.value)) is (
        path.suffix == ".compact" and name != "newer-major.compact"
    )


@pytest.mark.parametrize("name", [name for name in SKIPPED if name.endswith(".json")])
def test_the_same_field_without_the_newer_number_is_damage(name: str) -> None:
    plain = json.loads((HERE / "future" / name).read_bytes())
    if name == "new-field.json":
        plain["schema_version"]["minor"] -= 1
    else:
        plain["writer"]["revision"] -= 1
    with pytest.raises(
        pt2wire.DeserializeError, match=r"found one that it does not have.*damaged, its version"
    ):
        pt2wire.from_json(json.dumps(plain))


def test_the_cpp_header_counts_skipped_fields_and_marks_what_it_does_not_know() -> None:
    names = [name for name, future in FUTURES.items() if ".compact" in future.forms and name != "newer-major"]
    cases = [("ExportedProgram", (HERE / f"future/{name}.compact").read_bytes()) for name in names]
    texts = [outcome.text.decode() for outcome in cpp.answers(cpp.dumper(), cases)]
    told = {name: text for name, text in zip(names, texts, strict=True)}
    assert told["new-field"].endswith(" skipped 1")
    assert told["new-own-field"].endswith(" skipped 1")
    assert told["adopted-name"].endswith(" skipped 1")
    assert f"arg=Argument.?({_MEMBER})," in told["new-union-member"]
    assert f"arg=Argument.as_scalar_type({max(types.ScalarType) + 1}:)," in told["new-enum-value"]


def test_no_reader_warns_about_what_it_knows() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for suffix, read in READERS.items():
            read((HERE / f"ExportedProgram{suffix}").read_bytes())
