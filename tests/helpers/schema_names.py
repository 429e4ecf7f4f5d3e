"""The names that generated code uses itself, found in what is generated from a schema of marked names."""

from __future__ import annotations

import ast
import builtins
import enum
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

from pt2wire.codegen.outputs import render_all
from pt2wire.codegen.resolve import load_schema, parse_schema

from .cpp import INCLUDES, ROOT, run
from .schemas import SCHEMA, indented

#: Begins every name of the schema below, and so tells them from those of the generated code.
MARKED = "zz"

_KINDS = ("i64", "integer", "bool", "double", "string", "binary", "ZzEnum", "ZzLeaf")
_SHAPES = (
    "{}",
    "optional {}",
    "list<{}>",
    '"map<string, {}>"',
    '"map<string, list<{}>>"',
    '"list<map<string, {}>>"',
    "optional list<{}>",
)
_SPELLINGS = [shape.format(kind) for kind in _KINDS for shape in _SHAPES]
_DEFAULTS = (
    ("i64", "1"),
    ("bool", "true"),
    ("double", "0.5"),
    ("string", "a"),
    ("binary", '""'),
    ("ZzEnum", "zzOne"),
    ("list<i64>", "[]"),
    ('"map<string, i64>"', "{}"),
    ("optional i64", "null"),
)


def _fields(spellings: list[str], start: int = 1) -> str:
    return "".join(
        f"    zz{number}: {{id: {number}, type: {spelling}, doc: d}}\n"
        for number, spelling in enumerate(spellings, start)
    )


def schema_of_marked_names() -> str:
    """A schema with every shape of type, in which all names are marked."""
    members = [spelling for spelling in _SPELLINGS if not spelling.startswith("optional")]
    defaults = [f"{type_}, default: {default}" for type_, default in _DEFAULTS]
    head = '  kind: {}\n  since: "8.2"\n  doc: d\n  fields:\n'
    own = "    zzOwn: {id: 1000, type: optional i64, default: null, since_revision: 1, doc: d}\n"
    text = (
        'ZzEnum:\n  kind: enum\n  since: "8.2"\n  doc: d\n  values:\n'
        "    zzOne: {value: 0, torch: zzTorch, c10: zzC, bits: 8, doc: d}\n"
        f"ZzLeaf:\n{head.format('struct')}"
        + _fields(["i64"])
        + f"ZzStruct:\n{head.format('struct')}"
        # Field by field, as the formatter wants required ones first.
        + _fields([*_SPELLINGS, "list<ZzStruct>", "list<ZzUnion>"])
        + _fields(defaults, 100)
        + own
        + f"ZzUnion:\n{head.format('union')}"
        + _fields([*members, "list<ZzUnion>"])
    )
    return indented(text)


def generated() -> dict[str, str]:
    """The generated files of that schema."""
    source = schema_of_marked_names().encode()
    files = render_all(parse_schema(source, "marked.yaml"), source)
    return {path: content.decode() for path, content in files.items()}


def python_for_types() -> set[str]:
    """What a type cannot be called in Python: the modules, and all names in those that import the types."""
    names = set()
    for path, text in generated().items():
        if not path.endswith(".py"):
            continue
        names.add(path.removesuffix(".py"))
        module = ast.parse(text)
        imported = {a.name for s in ast.walk(module) if isinstance(s, ast.ImportFrom) for a in s.names}
        if path == "types.py" or any(_marked(name) for name in imported):
            names |= set(_identifiers(module))
    return _unmarked(names)


def python_for_fields(kind: str) -> set[str]:
    """What a field or member cannot be called in Python: attributes of its class, and names within."""
    module = ast.parse(generated()["types.py"])
    (body,) = [n for n in module.body if isinstance(n, ast.ClassDef) and n.name == f"Zz{kind}"]
    base = getattr(importlib.import_module("pt2wire.generated.base"), kind)
    names = {name for name in dir(base) if not name.startswith("__")}
    for statement in body.body:
        names |= set(_in_class(statement))
    if kind == "Struct":
        # What dataclasses find where they look for a default: attributes of all classes.
        names |= {name for name in dir(type) if not name.startswith("__")}
    if kind == "Union":
        # A member's value lies in an attribute of its name with an underscore before it.
        names |= {name.removeprefix("_") for name in names}
    return _unmarked(names)


def _in_class(statement: ast.stmt) -> Iterator[str]:
    """Names that a statement of a class defines, or looks up in it."""
    if isinstance(statement, ast.FunctionDef):
        yield statement.name
        parts: list[ast.AST | None] = [*statement.decorator_list, statement.args, statement.returns]
    else:
        parts = [statement]
    for part in parts:
        for node in ast.walk(part) if part is not None else ():
            if isinstance(node, ast.Name):
                yield node.id


def python_for_values() -> set[str]:
    """What a value cannot be called in Python: attributes of all enums."""
    return {name for name in dir(enum.IntEnum) if not name.startswith("_")}


def _identifiers(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name


def cpp_for_types() -> set[str]:
    """What a type cannot be called in C++: what the headers declare in their namespaces."""
    headers = sorted((ROOT / "runtime/include/pt2wire").glob("*.h"))
    names = set()
    for text in (*(header.read_text() for header in headers), generated()["include/pt2wire/schema.h"]):
        code = re.sub(r"//.*|\[\[.*?\]\]\s*", "", text).replace("decltype(auto)", "auto")
        names |= set(re.findall(r"^(?:class|struct|enum class|using|namespace) (\w+)", code, re.M))
        names |= set(
            re.findall(r"^(?:(?:inline|constexpr|static|template.*>) )+.*?(\w+)(?:\(| = |\{)", code, re.M)
        )
        names |= set(re.findall(r"^(?:[\w:<>*&]+ )+[*&]?(\w+)\(", code, re.M))
    # Parameters of templates that are named as a type of the schema is, or name one.
    for parameters in re.findall(r"^template <(.*)>\n.*Zz", code, re.M):
        names |= set(re.findall(r"class (\w+)", parameters))
    return _unmarked((names | set(_cpp_listed())) - set(load_schema(SCHEMA).types))


def _cpp_listed() -> Iterator[str]:
    """What clang++ knows to be declared in our namespaces, where all headers are included."""
    listing = run(["clang++", *_CPP, "-fsyntax-only", "-Xclang", "-ast-list", "-"], _all_headers())
    text = "".join(path.read_text() for path in (ROOT / "runtime/include/pt2wire").glob("*.h"))
    # These are listed, too, and hide nothing beyond their own template.
    parameters = {p.split()[-1] for line in re.findall(r"template <(.+)>", text) for p in line.split(",")}
    found = re.findall(r"^pt2wire(?:::detail)?::([a-z_A-Z]\w*)", listing.decode(), re.M)
    yield from set(found) - parameters


def cpp_macros(compiler: str, standard: str, *headers: str) -> set[str]:
    """What no name can be in C++, as the compiler replaces it where headers are included."""
    code = "".join(f"#include <{header}>\n" for header in headers).encode()
    listing = run([compiler, *_CPP, f"-std={standard}", "-dM", "-E", "-"], code).decode()
    names = set(re.findall(r"^#define (\w+)", listing, re.M))
    return {name for name in names if not name.startswith("_") and "__" not in name}


_CPP = ("-x", "c++", "-std=c++17", *(f"-I{folder}" for folder in INCLUDES))


def _all_headers() -> bytes:
    names = sorted(path.name for folder in INCLUDES for path in (folder / "pt2wire").glob("*.h"))
    return "".join(f'#include "pt2wire/{name}"\n' for name in names).encode()


def cpp_for_members() -> set[str]:
    """What a member cannot be called in C++: what the text of structs and unions names."""
    code = re.sub(r"//.*|\"[^\"]*\"", "", generated()["include/pt2wire/schema.h"])
    bodies = re.findall(r"^(?:struct|class) Zz\w+.*?^\};", code, re.M | re.S)
    return _unmarked(set(re.findall(r"(?<![:.>\w])[A-Za-z_]\w*", " ".join(bodies))))


def thrift_constants() -> set[str]:
    """What a type cannot be called in the IDL: its constants."""
    return set(re.findall(r"^const i32 (\w+)", generated()["schema.thrift"], re.M))


def compile_with_apache(folder: Path) -> None:
    """Makes Apache's C++ and Python of the schema, which the following look into."""
    (folder / "marked.thrift").write_text(generated()["schema.thrift"])
    for language in ("cpp", "py"):
        run(["thrift", "--gen", language, "-out", folder, folder / "marked.thrift"])


def thrift_for_types(folder: Path) -> set[str]:
    """What a type cannot be called either: names in Apache's Python module, and C++'s for integers."""
    (module,) = folder.rglob("ttypes.py")
    names = set(_identifiers(ast.parse(module.read_text()))) - thrift_for_fields(folder)
    names -= {*dir(builtins), "L", "key", "other", "self", "value"}  # in places where no type is named
    # Those of loops are numbered, as there may be several in one function.
    names = {name for name in names if not re.fullmatch(r"[kv]?iter\d+", name)}
    code = "".join(path.read_text() for path in folder.glob("marked_types.*"))
    return _unmarked(names) | set(re.findall(r"\bu?int\d+_t\b", code))


def thrift_for_fields(folder: Path) -> set[str]:
    """What a field cannot be called: methods of the structs that Apache's compiler makes."""
    header = (folder / "marked_types.h").read_text()
    (body,) = re.findall(r"^class ZzStruct : .*?^\};", header, re.M | re.S)
    names = set(re.findall(r"\b(\w+)\(", body))
    (module,) = folder.rglob("ttypes.py")
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ClassDef) and node.name == "ZzStruct":
            names |= {f.name for f in node.body if isinstance(f, ast.FunctionDef)}
    return {name for name in _unmarked(names) if not name.startswith("_")} - {"swap"}


def _marked(name: str) -> bool:
    return MARKED in name.lower()


def _unmarked(names: set[str]) -> set[str]:
    return {name for name in names if not _marked(name) and not name.startswith("_")}


if __name__ == "__main__":
    import tempfile

    folder = Path(tempfile.mkdtemp())
    compile_with_apache(folder)
    for title, found in (
        ("python types", python_for_types()),
        ("python struct", python_for_fields("Struct")),
        ("python union", python_for_fields("Union")),
        ("python values", python_for_values()),
        ("cpp types", cpp_for_types()),
        ("cpp members", cpp_for_members()),
        ("thrift constants", thrift_constants()),
        ("thrift types", thrift_for_types(folder)),
        ("thrift fields", thrift_for_fields(folder)),
    ):
        print(title, " ".join(sorted(found)))
