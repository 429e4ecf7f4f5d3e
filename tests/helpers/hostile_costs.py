"""Hostile costs: small files that ask for much memory or time."""

from __future__ import annotations

import io
import itertools
import json
import pickle
import zipfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from pt2wire.generated import thrift_codec, types

from .archives import pickled, with_records
from .hostile import (
    INDEX,
    INPUTS,
    PROGRAM,
    Tree,
    add,
    call,
    graph,
    honest,
    honest_records,
    records,
    root,
    set_size,
    thrift,
    tree,
)
from .hostile_files import Entry, _deflated, _entries, _zip

A = types.Argument
MIB = 1 << 20


def _squeezed(changes: dict[str, bytes | None]) -> bytes:
    """The archive with some records changed, all deflated: a few KB for many MB."""
    plainly = with_records(honest(), {INDEX: None, **changes})
    made = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(plainly)) as old,
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for info in old.infolist():
            new.writestr(zipfile.ZipInfo(info.filename), old.read(info), zipfile.ZIP_DEFLATED)
    return made.getvalue()


def _text(change: Callable[[bytes], bytes], record: str = PROGRAM) -> Callable[[], bytes]:
    return lambda: _squeezed({record: change(honest_records()[record])})


def _plain(change: Callable[[Any], object]) -> Callable[[], bytes]:
    def make() -> bytes:
        value = json.loads(honest_records()[PROGRAM])
        change(value)
        return _squeezed({PROGRAM: json.dumps(value).encode()})

    return make


def _false_size(size: int) -> Callable[[], bytes]:
    """A record that says that it is small and is not."""

    def make() -> bytes:
        bomb = _deflated(b" " * (100 * MIB))
        return _zip(
            [
                replace(entry, method=8, data=bomb, size=size, crc=0)
                if entry.name.endswith(PROGRAM.encode())
                else entry
                for entry in _entries()
            ]
        )

    return make


def _many_bombs() -> bytes:
    """Many records, each within the bounds of one."""
    bomb = _deflated(bytes(12 * MIB))
    return _zip(
        [
            *_entries(),
            *(
                Entry(f"archive/extra/{i}".encode(), bomb, 8, size=12 * MIB, crc=2891893236 if i else 0)
                for i in range(300)
            ),
        ]
    )


def _long_keys(count: int = 60_000) -> bytes:
    """Example inputs with a dictionary of integers of one hash, written by hand, as making it takes long."""
    numbers = [(number * ((1 << 61) - 1)).to_bytes(11, "little") for number in range(1, count)]
    items = b"".join(b"\x8a\x0b" + number + b"K\x00" for number in numbers)
    file, made = io.BytesIO(pickled([torch.ones(1)])), io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(made, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            if info.filename.endswith("/data.pkl"):
                data = b"\x80\x02)}(" + items + b"u\x86."
            new.writestr(info.filename, data)
    return records({INPUTS: made.getvalue()})


def _keyed(keys: list[Any]) -> Callable[[Any], None]:
    """Lets the program return a dictionary of these keys, as the tree spec of its results says."""
    leaf = {"type": None, "context": None, "children_spec": []}
    spec = {"type": "builtins.dict", "context": json.dumps(keys), "children_spec": [leaf] * len(keys)}

    def change(value: Any) -> None:
        value["graph_module"]["module_call_graph"][0]["signature"]["out_spec"] = json.dumps([1, spec])

    return change


def _inner_bomb() -> bytes:
    """Example inputs whose own zip file is a bomb."""
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("archive/data.pkl", b"\x80\x02" + b" " * (40 * MIB))
    return records({INPUTS: inner.getvalue()})


def _lists_in_lists(depth: int = 60) -> bytes:
    """A pickle of a few hundred bytes whose tree has 2**60 leaves."""
    value: Any = torch.ones(1)
    for _ in range(depth):
        value = [value, value]
    return records({INPUTS: pickled(((value,), {"options": {"by": value}, "mode": "sum"}))})


def _many_programs_and_entries() -> bytes:
    """Many more programs, which are damaged, and an index that says nothing of any, at length."""
    nothing = types.IndexEntry(program="", form="", record="", crc32=0, size=0, sha256="")
    index = types.ArchiveIndex(types.Writer(name="evil", version="1", revision=1), [nothing] * 250_000)
    damaged = (f"thrift/p{number}{part}.compact" for number in range(4000) for part in ("", "_weights"))
    return _squeezed({INDEX: thrift_codec.encode(index), **dict.fromkeys(damaged, b"")})


_S = "Symbol('s77', positive=True, integer=True)"


def _parts(target: str, **numbers: int) -> Callable[[Tree], None]:
    """Lets the program take its input apart, into more parts than it names."""

    def change(found: Tree) -> None:
        meta = graph(found).tensor_values["x"]
        graph(found).tensor_values["part"] = replace(meta, sizes=[types.SymInt.of_int(3)] * 2)
        arguments = {"self": A.of_tensor(types.TensorArgument("x"))}
        arguments |= {name: A.of_int(number) for name, number in numbers.items()}
        inputs = [types.NamedArgument(*item, types.ArgumentKind.POSITIONAL) for item in arguments.items()]
        outputs = [A.of_tensors([types.TensorArgument("part")])]
        node = types.Node(f"torch.ops.aten.{target}", inputs, outputs, {}, name="parts")
        graph(found).nodes.insert(0, node)

    return change


def _many_held(found: Tree) -> None:
    empty = types.Graph([], [], [], {}, {}, {})
    branches = [types.GraphArgument(name=f"g{number}", graph=empty) for number in range(3_000)]
    call(found, "cond").inputs += [
        types.NamedArgument("", A.of_graph(branch), types.ArgumentKind.POSITIONAL) for branch in branches
    ]
    graph(found).structures = [
        types.GraphStructure(name=f"s{number}", target=f"s{number}", callee="x") for number in range(30_000)
    ]


def _symbol(number: int) -> str:
    return f"Symbol('s{number}', positive=True, integer=True)"


def _many_sizes(make: Callable[[int], str], count: int) -> Callable[[Tree], None]:
    """Many tensors with sizes of their own, all of which are used nowhere."""

    def change(found: Tree) -> None:
        meta = graph(found).tensor_values["x"]
        for number in range(count):
            size = types.SymInt.create(as_expr=types.SymExpr(make(number), None))
            graph(found).tensor_values[f"v{number}"] = replace(meta, sizes=[size, meta.sizes[1]])

    return change


def _nested_roots(*primes: int) -> str:
    """Zero, as the root of a sum of roots and the same otherwise."""

    def root(number: str) -> str:
        return f"Pow({number}, Rational(1, 2))"

    pairs = [f"Mul(Integer(2), {root(f'Integer({p * q})')})" for p, q in itertools.combinations(primes, 2)]
    inner = f"Add(Integer({sum(primes)}), {', '.join(pairs)})"
    others = [f"Mul(Integer(-1), {root(f'Integer({p})')})" for p in primes]
    return f"Add({root(inner)}, {', '.join(others)})"


def _wide(function: str, count: int, make: Callable[[int], str] = _symbol) -> str:
    return f"{function}({', '.join(make(number) for number in range(count))})"


def _nested(function: str, depth: int, rest: str = "") -> str:
    return f"{function}(" * depth + _S + f"{rest})" * depth


_COMPARED = "StrictLessThan({}, Integer({}))"


def _below(number: int) -> str:
    return _COMPARED.format(_symbol(number), number + 3)


_EXPRESSIONS = {
    "remainders of sums": _wide("Add", 90, lambda i: f"Mod({_wide('Add', 20)}, Integer({i + 2}))"),
    "a wide product": _wide("Mul", 1000),
    "powers": _wide("Mul", 60, lambda i: f"Pow({_symbol(i)}, Integer(64))"),
    "a power of powers": "Pow(" * 50 + "Integer(10)" + ", Integer(64))" * 50,
    "a large power": "Pow(Integer(10), Integer(1000000000))",
    "a large product": "Mul(" + ", ".join(["Integer(340282366920938463463374607431768211455)"] * 1000) + ")",
    "a shift by much": f"LShift({_S}, Integer(1000000000000))",
    "a power by a shift": "PowByNatural(Integer(10), LShift(Integer(1), Integer(60)))",
    "a product that expands": "Mul(" + ", ".join(f"Add({_symbol(i)}, Integer(1))" for i in range(40)) + ")",
    "a power that expands": f"Pow({_wide('Add', 30)}, Integer(30))",
    "a sum of nested roots": f"Abs({_nested_roots(2, 3, 5, 7, 11, 13)})",
    "a long text": "Add(" + ", ".join([_S] * 100_000) + ")",
    "many terms": _wide("Add", 5_000),
    "deep nesting": _nested("Identity", 100_000),
    "deep negation": "Not(" * 100_000,
    "a large float": "Float('1e999999999', precision=53)",
    "a precise float": "Float('1.5', precision=1000000000)",
    "a long number": f"Integer({'9' * 60_000})",
    "a case by numbers": "Piecewise(ExprCondPair(Integer(3), LessThan(Integer(0), "
    "ToFloat(Float('0.0', precision=53)))), ExprCondPair(Integer(7), true))",
    "a case by floats": "Piecewise(ExprCondPair(Integer(3), Unequality(Integer(1), "
    "OpaqueUnaryFn_tanh(Rational(5, 9)))), ExprCondPair(Integer(7), true))",
    "a deep quotient": _nested("FloorDiv", 90, ", Integer(7)"),
    "a deep remainder": _nested("Mod", 90, ", Integer(7)"),
    "deep indexing": _nested("ModularIndexing", 60, ", Integer(3), Integer(5)"),
    "a float of floats": "FloorDiv(Float('1e300', precision=53), Float('1e-300', precision=53))",
}
#: Expressions of allowed size that sympy takes long for: they may load, if it does not take long.
_SLOW = {
    "a wide maximum": _wide("Max", 600),
    "a wide minimum of sums": _wide("Min", 300, lambda i: f"Add({_symbol(i)}, {_symbol(i + 1)})"),
    "maxima of minima": _wide("Max", 60, lambda i: f"Min({_symbol(i)}, {_symbol(i + 1)}, Integer({i}))"),
    "quotients of sums": _wide("Add", 60, lambda i: f"FloorDiv({_wide('Add', 20)}, Integer({i + 2}))"),
    "quotients of products": f"FloorDiv({_wide('Mul', 60)}, {_wide('Mul', 50)})",
    "a deep maximum": _nested("Max", 60, ", Integer(3)"),
    "many cases": "Piecewise("
    + ", ".join(f"ExprCondPair(Integer({i}), {_below(i)})" for i in range(200))
    + ", ExprCondPair(Integer(1), true))",
    "cases of cases": "Piecewise("
    + ", ".join(
        f"ExprCondPair(Integer({i}), And({_below(i)}, {_COMPARED.format(_S, i + 3)}))" for i in range(60)
    )
    + ", ExprCondPair(Integer(1), true))",
    "a wide condition": "Where(And(" + ", ".join(_below(i) for i in range(500)) + f"), {_S}, Integer(1))",
    "conditions of one symbol": "Where(Or("
    + ", ".join(_COMPARED.format(_S, i + 3) for i in range(500))
    + f"), {_S}, Integer(1))",
    "a shape that may be dense": _wide("IsNonOverlappingAndDenseIndicator", 64),
    "deep bits": _nested("BitwiseFn_bitwise_and", 60, ", Integer(7)"),
}

_SOURCE = '[{"name": "a", "target": "b", "graph_id": 1, "pass_name": "", "action": "", "from_node": '

_COSTS: dict[str, tuple[Callable[[], bytes], str]] = {
    "a zip bomb": (lambda: _squeezed({PROGRAM: b" " * (40 * MIB)}), "sizes are bounded before inflating"),
    "a zip bomb that lies": (_false_size(100), "inflating stops at the size"),
    "a zip bomb in parts": (_many_bombs, "all deflated records are bounded together"),
    "a program of blanks": (lambda: _squeezed({PROGRAM: b" " * (15 * MIB)}), "reading takes linear time"),
    "a program of brackets": (lambda: _squeezed({PROGRAM: b"[" * (15 * MIB)}), "depth is bounded"),
    "a program of objects": (
        _text(lambda data: b'{"x": [' + b"{}," * (5 * MIB) + b"{}]}"),
        "objects are counted before decoding",
    ),
    "a program of lists": (
        _text(lambda data: b'{"x": ' + b"[" * 500 + b"[]," * (5 * MIB) + b"[]" + b"]" * 500 + b"}"),
        "objects are counted before decoding",
    ),
    "a number of a million digits": (
        _text(lambda data: data.replace(b'"aten":10', b'"aten":' + b"9" * 1_000_000, 1)),
        "digits are bounded",
    ),
    "a float of a million digits": (
        _text(lambda data: data.replace(b'"aten":10', b'"aten":1.' + b"9" * 1_000_000, 1)),
        "types are exact",
    ),
    "an unknown field that is deep": (
        _text(lambda data: b'{"x":' + b'{"x":' * 5000 + b"1" + b"}" * 5000 + b"," + data[1:]),
        "depth is bounded",
    ),
    "a struct of structs": (thrift(lambda data: b"\x1c" * 100_000), "depth is bounded"),
    "a list of structs": (
        thrift(lambda data: b"\x3c\x1c\x59\xfc\xff\xff\xff\x07" + bytes(1000)),
        "counts are bounded by bytes",
    ),
    "a list of lists": (thrift(lambda data: b"\x19" + b"\xf9\xff\xff\x03" * 200), "depth is bounded"),
    "Thrift of stops": (
        thrift(lambda data: b"\x6c" + b"\x19\xfc\xff\xff\xff\x04" + bytes(12 * MIB)),
        "objects are counted before decoding",
    ),
    "an inner zip bomb": (_inner_bomb, "example inputs are never inflated"),
    "a pickle of keys of one hash": (_long_keys, "keys are counted before they are compared"),
    "a tree without end": (_lists_in_lists, "a pickle is followed as far as the program says"),
    "a pickle of brackets": (
        lambda: records({INPUTS: b"\x80\x02" + b"(" * 1_000_000 + b"."}),
        "what is damaged is replaced",
    ),
    "a pickle of a large storage": (
        lambda: records({INPUTS: pickle.dumps(bytearray(100)).replace(b"\x64", b"\xff")}),
        "what is damaged is replaced",
    ),
    **{
        name: (tree(lambda t, e=e: set_size(t, e)), "expressions are bounded")
        for name, e in _EXPRESSIONS.items()
    },
    "many expressions": (
        tree(_many_sizes(lambda i: _wide("Add", 60, lambda j: _symbol(i * 60 + j)), 3000)),
        "all expressions are bounded together",
    ),
    "a deep tree spec": (
        tree(
            lambda t: setattr(
                root(t),
                "in_spec",
                "[1, " + '{"type": "builtins.list", "context": "null", "children_spec": [' * 5000,
            )
        ),
        "depth is bounded",
    ),
    "keys of one hash": (
        _plain(_keyed([index * ((1 << 61) - 1) for index in range(1, 50_000)])),
        "keys are compared in linear time",
    ),
    "tuples of one hash as keys": (
        _plain(_keyed(list(itertools.islice(itertools.product((-1, -2), repeat=16), 50_000)))),
        "keys are compared in linear time",
    ),
    "a wide tree spec": (
        _plain(
            lambda v: v["graph_module"]["module_call_graph"][0]["signature"].update(
                in_spec='[1, {"type": "builtins.tuple", "context": "null", "children_spec": ['
                + ", ".join(['{"type": null, "context": null, "children_spec": []}'] * 250_000)
                + "]}]"
            )
        ),
        "leaves are counted",
    ),
    "a tree spec of keys": (
        _plain(
            lambda v: v["graph_module"]["module_call_graph"][0]["signature"].update(
                in_spec='[1, {"type": "builtins.dict", "context": '
                + json.dumps(json.dumps([2.0 ** (61 * (i % 16)) * (i + 1) for i in range(200_000)]))
                + ', "children_spec": []}]'
            )
        ),
        "one key for each child",
    ),
    **{
        f"a guard of {name}": (tree(lambda t, g=g: t.guards_code.append(g)), "guards are bounded")
        for name, g in {
            "minuses": "-" * 60_000 + "1 == 1",
            "brackets": "(" * 60_000,
            "negations": "not " * 15_000 + "True",
            "sums": "1+" * 30_000 + "1 == 1",
            "subscripts": "L" + "[0]" * 20_000 + " == 1",
            "conditions": "1 if 1 else " * 5_000 + "1",
            "much text": "1 == 1 and " * 10_000 + "1 == 1",
            "a large power": "10**64**64 == 1",
            "a power of the input": "2 ** (L['args'][0].size()[0] * 1000000000000) == 1",
            "a product to the input": "(9999999999 * 9999999999) ** (L['args'][0].size()[0] * 10000000) == 1",
            "rounding": "round(L['args'][0].size()[0], -1000000000) == 0",
            "rounding by the input": "round(5, L['args'][0].size()[0] * -1000000000) == 0",
            "a long number": "9" * 60_000 + " == 1",
        }.items()
    },
    "many guards": (
        tree(lambda t: t.guards_code.extend(f"L['x'].size()[0] + {i} >= 1" for i in range(60_000))),
        "guards are counted",
    ),
    "long guards": (
        tree(
            lambda t: t.guards_code.extend(
                " + ".join(["L['x'].size()[0]"] * 90) + f" >= {i % 2}" for i in range(600)
            )
        ),
        "characters of guards are counted",
    ),
    "a note that is deep": (
        tree(lambda t: call(t, "aten.linear").metadata.update(custom="[" * 900 + "]" * 900)),
        "what cannot be copied is refused",
    ),
    "a note that is deeper": (
        tree(lambda t: call(t, "aten.linear").metadata.update(custom="[" * 100_000)),
        "depth is bounded",
    ),
    "sources of sources": (
        tree(lambda t: call(t, "aten.linear").metadata.update(from_node=_SOURCE * 300 + "null" + "}]" * 300)),
        "depth is bounded",
    ),
    "a module stack of brackets": (
        _plain(
            lambda v: v["graph_module"]["graph"]["nodes"][0]["metadata"].update(
                nn_module_stack="[" * 10 * MIB
            )
        ),
        "reading takes linear time",
    ),
    "a call of many arguments": (
        _plain(
            lambda v: v["graph_module"]["graph"]["nodes"][0]["inputs"].extend(
                {"name": f"a{min(i, 99_998)}", "arg": {"as_int": 1}, "kind": 1} for i in range(100_000)
            )
        ),
        "looking for one that is there twice takes linear time",
    ),
    "many calls of the program": (
        _plain(
            lambda v: v["graph_module"].update(
                module_call_graph=v["graph_module"]["module_call_graph"] * 3000,
                signature={
                    **v["graph_module"]["signature"],
                    "input_specs": v["graph_module"]["signature"]["input_specs"] * 3000,
                },
            )
        ),
        "specs are counted once",
    ),
    "many ranges": (
        _plain(
            lambda v: v["range_constraints"].update(
                {f"s{i}": {"min_val": 3, "max_val": 2} for i in range(200_000)}
            )
        ),
        "reading takes linear time",
    ),
    "a long name of a range": (
        _plain(lambda v: v["range_constraints"].update({"s" * MIB: {"min_val": 0, "max_val": 2}})),
        "names of ranges are bounded",
    ),
    "many outputs of nothing": (
        _plain(lambda v: v["graph_module"]["graph"].update(outputs=[{"as_none": True}] * 300_000)),
        "reading takes linear time",
    ),
    "many remainders in guards": (
        tree(
            lambda t: t.guards_code.extend(
                f"L['x'].size()[0] % {number} % {number + 7} % {number + 14} >= 0"
                for number in range(2, 2_000)
            )
        ),
        "what passes trace again is bounded",
    ),
    "a tensor split into many parts": (
        tree(_parts("tensor_split.sections", sections=1 << 28, dim=1)),
        "parts are counted",
    ),
    "a tensor split into many columns": (tree(_parts("hsplit.int", sections=1 << 28)), "parts are counted"),
    "many chunks of an unknown size": (
        tree(_parts("chunk.default", chunks=1 << 28, dim=0)),
        "parts are bounded",
    ),
    "many subgraphs beside many tree specs": (tree(_many_held), "names are looked up, not searched for"),
    "dictionaries in dictionaries": (tree(lambda t: _deep_argument(t, 50)), "depth is bounded"),
    "many dimensions": (
        _plain(
            lambda v: v["graph_module"]["graph"]["tensor_values"]["x"].update(
                sizes=[{"as_int": 1}] * 200_000, strides=[{"as_int": 1}] * 200_000
            )
        ),
        "dimensions are bounded",
    ),
}
for _name, (_make, _proves) in _COSTS.items():
    harmless = _name in (
        "a pickle of keys of one hash",
        "an inner zip bomb",
        "a tree without end",
        "a pickle of brackets",
        "a pickle of a large storage",
    )
    add("costs", _name, _proves, _make, refused=not harmless)


def _deep_argument(found: Tree, depth: int) -> None:
    argument = A.of_int(1)
    for _ in range(depth):
        argument = A.of_string_to_argument({"a": argument})
    call(found, "cond").inputs.append(types.NamedArgument("", argument, types.ArgumentKind.POSITIONAL))


#: Files that cost little and change nothing.
_HARMLESS: dict[str, tuple[Callable[[], bytes], str]] = {
    "an unbacked symbol of a large number": (
        tree(lambda t: t.range_constraints.update(u999999999999=types.RangeConstraint(0, 5))),
        "nobody counts up to it",
    ),
    "a symbol of a large number": (
        tree(lambda t: t.range_constraints.update(s999999999999=types.RangeConstraint(2, 5))),
        "nobody counts up to it",
    ),
    "many ranges of nothing": (
        _plain(
            lambda v: v["range_constraints"].update(
                {f"s{i}": {"min_val": 2, "max_val": 3} for i in range(1000, 100_000)}
            )
        ),
        "what is not used costs little",
    ),
    "many programs and entries of the index": (
        _many_programs_and_entries,
        "what the index says of a record is looked up",
    ),
    "many verifiers": (
        _plain(lambda v: v.update(verifiers=["TRAINING"] * 100_000)),
        "each verifies once",
    ),
    "guards that are true": (
        tree(lambda t: t.guards_code.extend(["L['x'].size()[0] >= 1"] * 2000)),
        "a guard costs little",
    ),
    **{
        f"{name} of nothing": (tree(_many_sizes(lambda i, e=e: e, 1)), "what sympy takes is bounded")
        for name, e in _SLOW.items()
    },
}
for _name, (_make, _proves) in _HARMLESS.items():
    add("costs", _name, _proves, _make, refused=False)
