"""What the C++ headers cost and promise: warnings, compile time, sizes, allocations, limits, names."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from pt2wire.codegen import cpp as target
from pt2wire.codegen.model import Kind
from pt2wire.exporting import export_program
from pt2wire.generated import thrift_codec, types

from .helpers import cpp
from .helpers.families import FAMILIES

HEADERS = sorted(path for folder in cpp.INCLUDES for path in folder.glob("pt2wire/*.h"))


@pytest.fixture(scope="module")
def program_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real program of some size, as Thrift."""
    path = tmp_path_factory.mktemp("cpp") / "program.compact"
    path.write_bytes(thrift_codec.encode(export_program(FAMILIES["bert_static"].program())))
    return path


@pytest.mark.parametrize("compiler", cpp.COMPILERS)
@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_headers_give_no_warning(compiler: str, standard: str, tmp_path: Path) -> None:
    _check_syntax(tmp_path, "archive.h", compiler, standard)  # includes all others


@pytest.mark.parametrize("header", [path.name for path in HEADERS])
def test_header_stands_alone(header: str, tmp_path: Path) -> None:
    _check_syntax(tmp_path, header, "clang++", "c++17")


def _check_syntax(folder: Path, header: str, compiler: str, standard: str) -> None:
    source = folder / "includes.cpp"
    source.write_text(f'#include "pt2wire/{header}"\n#include "pt2wire/{header}"\nint main() {{}}\n')
    includes = [f"-I{path}" for path in cpp.INCLUDES]
    cpp.run([compiler, f"-std={standard}", *cpp.WARNINGS, *includes, "-fsyntax-only", source])


def test_header_and_a_reading_program_compile_in_seconds(tmp_path: Path) -> None:
    source = tmp_path / "reader.cpp"
    source.write_text(
        '#include "pt2wire/schema.h"\n'
        "using namespace pt2wire;\n"
        "std::size_t nodes(Bytes bytes) {\n"
        "  return decode_compact<ExportedProgram>(bytes)->graph_module.graph.nodes.size();\n"
        "}\n"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    includes = [f"-I{path}" for path in cpp.INCLUDES]
    cpp.run(["g++", "-std=c++17", "-O2", *includes, "-c", source, "-o", tmp_path / "reader.o"])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime - before.ru_utime < 20  # processor time; 4 s on a quiet machine


def test_decoding_takes_few_allocations_and_less_memory_than_the_input(program_file: Path) -> None:
    cost = {name: int(number) for name, number in cpp.costs(program_file, "compact").items()}
    assert cost["nodes"] > 50
    assert cost["Argument"] == 40
    assert cost["SymInt"] == 16
    assert cost["allocations"] <= 20
    assert cost["peak"] <= 1.2 * cost["input"]
    assert cost["left"] == 0


def test_a_hostile_megabyte_takes_less_than_64_mib(tmp_path: Path) -> None:
    """Flooded with what takes most memory for its bytes."""
    none = b"\xa1\0"  # Argument.as_none
    flood = tmp_path / "flood.compact"
    count = 500_000
    varint = bytes([count & 0x7F | 0x80, count >> 7 & 0x7F | 0x80, count >> 14])
    flood.write_bytes(b"\xac\xac\xa9\xfc" + varint + none * count)
    cost = cpp.costs(flood, "compact")
    assert "graph_module.graph.inputs: the document needs more memory than its size allows" in cost["error"]
    assert int(cost["peak"]) < 64 << 20
    assert int(cost["input"]) < 1 << 20


def test_names_of_the_schema_are_made_safe() -> None:
    assert target.safe_name("operator") == "operator_"
    assert target.safe_name("tag", frozenset({"tag"})) == "tag_"
    assert target.safe_name("as_int") == "as_int"


def test_enum_tables_are_those_of_the_schema(tmp_path: Path) -> None:
    """What the header says of each value is what schema.yaml says."""
    enums = [definition for definition in cpp.schema().ordered if definition.kind is Kind.ENUM]
    lines: list[str] = []
    expected: list[str] = []
    for definition in enums:
        values = definition.values
        functions = {
            "name": [v.name for v in values],
            "torch_name": [v.torch for v in values],
            "c10_name": [v.c10 for v in values],
            "bits": [v.bits for v in values],
        }
        for function, facts in functions.items():
            if not any(facts):
                continue
            unknown = "0" if function == "bits" else ""
            for value, fact in zip(values, facts, strict=True):
                safe = target.safe_name(value.name)
                lines.append(f"std::cout << {function}({definition.name}::{safe}) << '\\n';")
                expected.append(str(fact) if fact else unknown)
            lines.append(f"std::cout << {function}(static_cast<{definition.name}>(12345)) << '\\n';")
            expected.append(unknown)
    source = tmp_path / "names.cpp"
    body = "\n  ".join(lines)
    includes = '#include "pt2wire/schema.h"\n#include <iostream>\n'
    source.write_text(f"{includes}using namespace pt2wire;\nint main() {{\n  {body}\n}}\n")
    assert cpp.run([cpp.build(source, *cpp.WARNINGS)]).decode().split("\n") == [*expected, ""]
    assert types.C10_NAMES[types.ScalarType][types.ScalarType.BFLOAT16] == "BFloat16"
