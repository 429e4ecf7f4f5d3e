"""codegen/schema.schema.json, with which editors check a schema, agrees with the compiler."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import yaml

from .helpers.schema_changes import BASE, MENDED, PAIRS, changed
from .helpers.schemas import MARK, ROOT, SCHEMA
from .test_codegen_faults import FAULTS
from .test_codegen_lint import PAIRS as LINT_PAIRS

META = json.loads((ROOT / "codegen/schema.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(META)

#: Rules on what one place alone says: these an editor can check as well. Others compare places.
LOCAL = {
    "empty-type",
    "invalid-identifier",
    "missing-key",
    "two-origins",
    "union-member",
    "unknown-key",
    "unquoted-version",
    "wrong-node",
    "wrong-value",
}
#: What YAML readers make nothing of, or which they have turned into a right number by then.
SPELLING = {
    "a key that is a list",
    "an octal revision",
    "a field's id in hexadecimal",
    "a field's id in base 60",
}


LOCAL_FAULTS = {name for name, (_, rule, _) in FAULTS.items() if rule in LOCAL} - SPELLING


def plain(text: str) -> Any:
    return yaml.safe_load(text.replace(MARK, ""))


def test_it_is_a_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(META)


def test_schema_yaml_conforms() -> None:
    assert [error.message for error in VALIDATOR.iter_errors(plain(SCHEMA.read_text()))] == []


def resolved() -> dict[str, str]:
    """Schemas that resolve, whatever lint or breaking say."""
    texts = {"the base": BASE} | {name: changed(changes) for name, changes in MENDED.items()}
    texts |= {f"breaking {pair.rule} {pair.message}": changed(pair.bad) for pair in PAIRS}
    for rule, before, after, message in LINT_PAIRS:
        texts |= {f"lint {rule} {message}": before, f"lint {rule} {message}, mended": after}
    return texts


def test_what_resolves_conforms() -> None:
    for name, text in resolved().items():
        assert [error.message for error in VALIDATOR.iter_errors(plain(text))] == [], name


@pytest.mark.parametrize("name", sorted(LOCAL_FAULTS))
def test_a_fault_in_one_place_does_not_conform(name: str) -> None:
    assert not VALIDATOR.is_valid(plain(FAULTS[name][0]))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\nrevision: 1", "\nrevision: one", "'one' is not of type 'integer'"),
        ("id: 20, type: Kind", "id: 40000, type: Kind", "40000 is greater than the maximum of 32767"),
        ("type: list<Choice>", "type: list(Choice)", "'list(Choice)' does not match"),
        ("default: false", "default: [1]", "[1] is expected to be empty"),
    ],
)
def test_the_editor_is_told_what_is_wrong(old: str, new: str, message: str) -> None:
    assert BASE.count(old) == 1
    (error,) = VALIDATOR.iter_errors(plain(BASE.replace(old, new)))
    assert message in error.message
