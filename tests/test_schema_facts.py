"""schema.yaml says what PyTorch's releases said, as recorded in tests/data, and documents all of it."""

from __future__ import annotations

import json
import re

import pytest
from pt2wire.codegen.history import as_of
from pt2wire.codegen.lint import lint
from pt2wire.codegen.model import Kind, Schema, Version
from pt2wire.codegen.resolve import load_schema

from .helpers.schemas import ROOT, SCHEMA, default_of, spelled

FACTS = json.loads((ROOT / "tests/data/export_schema.json").read_text())


@pytest.fixture(scope="module")
def schema() -> Schema:
    return load_schema(SCHEMA)


@pytest.fixture(scope="module")
def then(schema: Schema) -> Schema:
    """The schema as it was at the version of the facts: later additions do not change them."""
    version = Version(*FACTS["schema_version"])
    if schema.version.major > version.major:
        pytest.skip(f"the facts are those of {version}, and a new major version may contradict them")
    return as_of(schema, version)


def test_versions_are_those_of_the_facts(then: Schema) -> None:
    assert [then.version.major, then.version.minor] == FACTS["schema_version"]
    assert then.treespec_version == FACTS["treespec_version"]
    releases = [{"torch": line.torch, "schema_version": str(line.version)} for line in then.log]
    assert releases == FACTS["releases"]


def test_every_type_of_the_facts_is_there_and_no_other_but_ours(then: Schema) -> None:
    assert [t.name for t in then.types.values() if not t.own] == list(FACTS["types"])
    assert [t.name for t in then.types.values() if t.since_revision == 1] == [
        "ExtraScalarType",
        "Value",
        "EnumMember",
        "NamedTupleValue",
        "ValueItem",
        "NamedValue",
        "GetItem",
        "Notes",
        "ModuleFrame",
        "GraphConstant",
        "GraphStructure",
        "TreeSpecNode",
        "Writer",
        "IndexEntry",
        "ArchiveIndex",
    ]


@pytest.mark.parametrize("name", FACTS["types"])
def test_a_type_equals_its_facts(then: Schema, name: str) -> None:
    facts, definition = FACTS["types"][name], then.types[name]
    assert (definition.kind.value, str(definition.since)) == (facts["kind"], facts["since"])
    if definition.kind is Kind.ENUM:
        values = {
            value.name: {"value": value.value, "since": str(value.since)}
            | ({"c10": value.c10} if value.c10 else {})
            for value in definition.values
        }
        assert list(values.items()) == list(facts["values"].items())
    else:
        fields = {
            field.name: {"id": field.id, "type": spelled(field), "since": str(field.since)}
            | default_of(field)
            for field in definition.fields
            if not field.own
        }
        assert list(fields.items()) == list(facts["fields"].items())


def test_our_first_fields_are_those_of_the_design(then: Schema) -> None:
    own = {
        f"{definition.name}.{field.name}": (field.id, spelled(field))
        for definition in then.types.values()
        for field in definition.fields
        if field.since_revision == 1 and not definition.own
    }
    assert own == {
        "TensorMeta.conj": (1000, "optional bool"),
        "TensorMeta.neg": (1001, "optional bool"),
        "TensorMeta.inner": (1002, "optional map<string, TensorMeta>"),
        "TensorMeta.coalesced": (1003, "optional bool"),
        "TensorMeta.subclass": (1004, "optional string"),
        "TensorMeta.context": (1005, "optional Value"),
        "TensorMeta.extra_dtype": (1006, "optional ExtraScalarType"),
        "Node.exact_inputs": (1000, "optional list<NamedValue>"),
        "Node.custom": (1001, "optional Value"),
        "Node.subgraphs": (1002, "optional list<GraphArgument>"),
        "Node.module_stack": (1003, "optional list<ModuleFrame>"),
        "GraphArgument.node": (1000, "optional string"),
        "Graph.placeholder_metadata": (1000, "optional map<string, Notes>"),
        "Graph.output_metadata": (1001, "optional map<string, Notes>"),
        "Graph.exact_output": (1002, "optional Value"),
        "Graph.order": (1003, "optional list<string>"),
        "Graph.getitem_metadata": (1004, "optional map<string, Notes>"),
        "Graph.constants": (1005, "optional list<GraphConstant>"),
        "Graph.structures": (1007, "optional list<GraphStructure>"),
        "Graph.getitems": (1008, "optional list<GetItem>"),
        "Graph.custom": (1009, "optional Value"),
        "Graph.get_attr_metadata": (1006, "optional map<string, Notes>"),
        "InputToConstantInputSpec.exact_value": (1000, "optional Value"),
        "ModuleCallSignature.exact_in_spec": (1000, "optional list<TreeSpecNode>"),
        "ModuleCallSignature.exact_out_spec": (1001, "optional list<TreeSpecNode>"),
        "RangeConstraint.min_float": (1000, "optional double"),
        "RangeConstraint.max_float": (1001, "optional double"),
        "GraphModule.custom": (1000, "optional Value"),
        "ExportedProgram.writer": (1000, "optional Writer"),
        "ExportedProgram.beyond": (1001, "optional list<string>"),
        "PayloadMeta.alias_of": (1000, "optional string"),
        "PayloadMeta.inner": (1001, "optional map<string, PayloadMeta>"),
        "PayloadMeta.absent": (1002, "optional bool"),
        "PayloadMeta.memory": (1003, "optional string"),
        "PayloadMeta.instance": (1004, "optional i64"),
    }


def test_the_log_names_what_each_version_added(schema: Schema) -> None:
    notes: dict[Version, str] = {}
    for line in schema.log:
        notes.setdefault(line.version, line.note)
    expected: dict[Version, set[str]] = {}
    for definition in schema.types.values():
        if definition.since and definition.since > schema.oldest_version:
            expected.setdefault(definition.since, set()).add(definition.name)
        for member in (*definition.fields, *definition.values):
            if member.since and member.since > schema.oldest_version and member.since != definition.since:
                expected.setdefault(member.since, set()).add(f"{definition.name}.{member.name}")
    assert set(expected) <= set(notes)
    for version, names in expected.items():
        assert set(re.findall(r"[A-Z]\w+(?:\.\w+)?", notes[version].removeprefix("Adds"))) == names, str(
            version
        )


def test_the_oldest_torch_is_the_first_that_writes_the_version(schema: Schema) -> None:
    release = next(line.torch for line in schema.log if line.version == schema.version)
    oldest = release.rpartition(".")[0]
    assert f'"torch>={oldest}",' in (ROOT / "pyproject.toml").read_text()
    assert f"PyTorch {oldest} or later" in (ROOT / "README.md").read_text()


def test_the_schema_has_no_lint_findings(schema: Schema) -> None:
    assert [finding.text() for finding in lint(schema)] == []


def test_docs_are_short_and_end_as_sentences(schema: Schema) -> None:
    for definition in schema.types.values():
        for item in (definition, *definition.fields, *definition.values):
            name = f"{definition.name}.{item.name}"
            assert 3 <= len(item.doc) <= 300, name
            assert item.doc.endswith("."), name
            assert len(re.findall(r"[.!?](?= [A-Z`]|$)", item.doc)) <= 3, name
