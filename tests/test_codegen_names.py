"""Names that generated code uses itself are kept from schemas: exactly those that are found in it."""

from __future__ import annotations

import builtins
import re
import shutil
from pathlib import Path

import pytest
from pt2wire.codegen import cpp, words
from pt2wire.codegen.macros import APACHE_MACROS, MACROS

from .helpers import cpp as cpp_helpers
from .helpers import schema_names as names

ROOT = Path(__file__).resolve().parents[1]

#: Those of later versions of Python.
_NEWER = {"is_integer"}


def test_types_are_not_called_as_what_stands_in_the_python_modules() -> None:
    assert names.python_for_types() - set(dir(builtins)) == words._PYTHON_MODULES - set(dir(builtins))


def test_fields_and_members_are_not_called_as_what_their_classes_have() -> None:
    assert names.python_for_fields("Struct") == words._PYTHON_STRUCTS
    assert names.python_for_fields("Union") == words._PYTHON_UNIONS


def test_values_are_not_called_as_what_all_enums_have() -> None:
    assert names.python_for_values() <= words._PYTHON_ENUMS | _NEWER
    assert words._PYTHON_ENUMS - names.python_for_values() <= {"mro", "name", "value"}


def test_types_are_not_called_as_what_the_headers_declare() -> None:
    assert names.cpp_for_types() - cpp.KEYWORDS == words._CPP_NAMESPACES


def test_types_are_not_called_as_what_comparisons_call_their_arguments() -> None:
    header = (ROOT / "generated/include/pt2wire/schema.h").read_text()
    first = set(re.findall(r"bool operator[!=]=\(const \w+<S>& (\w+), const", header))
    assert first == words._CPP_PARAMETERS


@pytest.mark.parametrize("compiler", cpp_helpers.COMPILERS)
@pytest.mark.parametrize("standard", ["c++17", "gnu++20"])
def test_nothing_is_called_as_a_macro_of_the_headers_that_ours_include(compiler: str, standard: str) -> None:
    """Of those that a schema of one's own can be used with; archive.h needs PyTorch's `ScalarType`."""
    for header in ("schema.h", "json.h"):
        found = names.cpp_macros(compiler, standard, f"pt2wire/{header}")
        assert {"EINVAL", "INT8_MAX"} <= found
        assert found <= MACROS | cpp.KEYWORDS, f"{sorted(found - MACROS - cpp.KEYWORDS)} of {header}"


@pytest.mark.skipif(shutil.which("thrift") is None, reason="needs Apache's thrift compiler")
def test_lint_knows_the_macros_of_the_headers_that_apaches_cpp_includes(tmp_path: Path) -> None:
    names.compile_with_apache(tmp_path)
    code = "".join(path.read_text() for path in tmp_path.glob("marked_types.*"))
    headers = re.findall(r"^#include <(.*)>", code, re.M)
    assert "thrift/TBase.h" in headers
    found = {name for name in names.cpp_macros("clang++", "c++17", *headers) if name[:6] != "BOOST_"}
    assert {"MAX", "SIGINT", "isset"} <= found
    assert found <= APACHE_MACROS | MACROS | cpp.KEYWORDS


def test_members_are_not_called_as_what_their_classes_name_in_cpp() -> None:
    """Names of every union get an underscore instead; `value` and `made` are local to methods."""
    free = cpp.KEYWORDS | cpp.UNION_NAMES | {"value", "made"}
    assert names.cpp_for_members() - free == words._CPP_BODIES - {"Indirect"}
    assert "Indirect" in words._CPP_NAMESPACES  # beside members that are too large for a union


def test_names_of_the_idl_and_of_apaches_classes_are_kept(tmp_path: Path) -> None:
    assert names.thrift_constants() == words._THRIFT_CONSTANTS
    names.compile_with_apache(tmp_path)
    assert names.thrift_for_types(tmp_path) == words._THRIFT_CODE
    assert names.thrift_for_fields(tmp_path) == words._THRIFT_METHODS
