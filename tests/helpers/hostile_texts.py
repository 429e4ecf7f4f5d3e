"""Hostile texts: expressions, names, constants, targets, tree specs, guards and metadata that hold code."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pt2wire.generated import types

from .hostile import (
    CODE,
    MARKER,
    PROGRAM,
    SHELL,
    TRAP,
    WEIGHTS,
    Tree,
    add,
    add_keyword,
    call,
    graph,
    honest_records,
    records,
    root,
    set_size,
    set_subgraph,
    signature,
    tree,
)

A = types.Argument

# -- expressions ------------------------------------------------------------------------------------------

_S = "Symbol('s77', positive=True, integer=True)"
_CLASS = f"().__class__.__base__.__subclasses__() and {CODE}"

#: What sympify would evaluate, by what it tries.
_EXPRESSIONS = {
    "a call": (CODE, "text is not evaluated"),
    "an import": (f"__import__('os').system({SHELL!r})", "text is not evaluated"),
    "a text in Max": (f"Max(Integer(3), {CODE!r})", "sympy is never handed a text, which it would evaluate"),
    "a text in Add": (f"Add({_S}, {CODE!r})", "sympy is never handed a text"),
    "a text in Integer": (f"Integer({CODE!r})", "sympy is never handed a text"),
    "a text in Float": (f"Float({CODE!r}, precision=53)", "the text of a Float is a decimal number"),
    "a text in Rational": (f"Rational({CODE!r}, 2)", "sympy is never handed a text"),
    "a symbol named as code": (f"Symbol({CODE!r}, integer=True)", "the name of a symbol is an identifier"),
    "a lambda": (f"Lambda(Symbol('x'), {CODE})", "classes of sympy are those of a table"),
    "a function of a module": (f"Function('f')({_S}) or {CODE}", "classes of sympy are those of a table"),
    "sympify itself": (f"sympify({CODE!r})", "classes of sympy are those of a table"),
    "parse_expr": (f"parse_expr({CODE!r})", "classes of sympy are those of a table"),
    "a subscript": (f"[{CODE}][0]", "the grammar has calls only"),
    "an attribute": (f"Integer(1).__class__.__init__.__globals__ or {CODE}", "the grammar has no attributes"),
    "subclasses": (_CLASS, "the grammar has no attributes"),
    "a comprehension": (f"Add(*[{CODE} for x in (1,)])", "the grammar has no comprehensions"),
    "a star": (f"Add(*({CODE},))", "the grammar has no stars"),
    "a keyword": (f"Add(Integer(1), evaluate={CODE})", "only assumptions have names"),
    "an assumption": (f"Symbol('s77', integer={CODE})", "assumptions are True or False"),
    "an f-string": (f"f'{{{CODE}}}'", "texts are names and decimal numbers"),
    "a walrus": (f"(x := {CODE})", "the grammar has no assignments"),
    "a second line": (f"{_S}\n{CODE}", "one expression, no lines"),
    "a semicolon": (f"{_S}; {CODE}", "one expression, no statements"),
    "a comment": (f"{_S} # {CODE}", "the grammar has no comments"),
    "text behind": (f"{_S} {CODE}", "nothing follows an expression"),
    "a backslash in a name": ("Symbol('s\\x27+" + CODE + "')", "names have no escapes"),
    "a quote in a name": (f"Symbol(\"s'+{CODE}+'\")", "names have no quotes"),
    "a null": (f"{_S}\0{CODE}", "control characters are no blanks"),
    "letters that fold": (
        "\uff4f\uff50\uff45\uff4e('" + MARKER + "','w')",
        "names are ASCII: Python folds others",
    ),
    "nothing": ("", "an empty text is no expression"),
    "an unknown class": ("Derivative(Symbol('s77'), Symbol('s77'))", "classes are those of a table"),
    "too few arguments": ("FloorDiv(Symbol('s77'))", "each function has its number of arguments"),
    "a condition as size": (f"Equality({_S}, Integer(4))", "a size is a number"),
    "a division by zero": ("FloorDiv(Integer(1), Integer(0))", "sympy's refusal is an error with a path"),
    "infinity as size": ("oo", "a size is finite"),
    "no number as size": ("nan", "a size is a number"),
    "a complex size": ("Pow(Integer(-1), Rational(1, 2))", "a size is an integer"),
    "a fraction as size": ("Rational(1, 2)", "a size is an integer"),
    "a negative size": ("Integer(-3)", "a size is not negative"),
}
for _name, (_text, _proves) in _EXPRESSIONS.items():
    add("expressions", _name, _proves, tree(lambda t, _text=_text: set_size(t, _text)))


# -- names ------------------------------------------------------------------------------------------------


def _rename_input(found: Tree, index: int, name: str) -> None:
    spec = signature(found).input_specs[index]
    argument = graph(found).inputs[index]
    old = argument.as_tensor.name
    _rename(found, old, name)
    argument.as_tensor.name = name
    arg = spec.value.arg
    (arg.as_tensor if isinstance(arg, A) else arg).name = name


def _rename(found: Tree, old: str, name: str) -> None:
    values = graph(found).tensor_values
    values[name] = values.pop(old)
    for node in graph(found).nodes:
        for named in node.inputs:
            for tensor in _tensors(named.arg):
                if tensor.name == old:
                    tensor.name = name


def _tensors(argument: types.Argument) -> list[types.TensorArgument]:
    if argument.type == "as_tensor":
        return [argument.as_tensor]
    return argument.as_tensors if argument.type == "as_tensors" else []


def _rename_node(found: Tree, name: str) -> None:
    node = call(found, "aten.linear")
    old = node.outputs[0].as_tensor.name
    _rename(found, old, name)
    node.outputs[0].as_tensor.name = name
    node.name = name


def _set_fqn(found: Tree, name: str, member: str = "parameter") -> None:
    spec = next(spec for spec in signature(found).input_specs if spec.type == member)
    setattr(spec.value, f"{member}_name", name)


def _set_forward_names(found: Tree, names: list[str]) -> None:
    root(found).forward_arg_names = names


def _set_call_fqn(found: Tree, name: str) -> None:
    found.graph_module.module_call_graph.append(types.ModuleCallEntry(fqn=name, signature=None))


def _set_constant_name(found: Tree, name: str) -> None:
    for spec in signature(found).input_specs:
        if spec.type == "constant_input":
            spec.constant_input.name = name


_SIGNATURE_END = f"x):\n    {CODE}\n    return (lambda x: 0)(0"
_NAMES: dict[str, tuple[Callable[[Tree], object], str]] = {
    "an input with a default": (lambda t: _rename_input(t, 3, f"x={CODE}"), "placeholders are identifiers"),
    "an input with a body": (lambda t: _rename_input(t, 3, _SIGNATURE_END), "placeholders are identifiers"),
    "an input with a star": (lambda t: _rename_input(t, 3, "*x"), "placeholders are identifiers"),
    "an input that is a keyword": (lambda t: _rename_input(t, 3, "lambda"), "no keywords of Python"),
    "an input called self": (lambda t: _rename_input(t, 3, "self"), "no names with a meaning in the source"),
    "an input called torch": (
        lambda t: _rename_input(t, 3, "torch"),
        "no names with a meaning in the source",
    ),
    "an input that folds": (
        lambda t: _rename_input(t, 3, "\uff58"),
        "ASCII only: Python folds other letters",
    ),
    "an input without a name": (lambda t: _rename_input(t, 3, ""), "a name is not empty"),
    "an endless name": (lambda t: _rename_input(t, 3, "x" * 100_000), "names are at most 4,096 characters"),
    "a weight with a default": (lambda t: _rename_input(t, 0, f"p={CODE}"), "placeholders are identifiers"),
    "a node with a statement": (lambda t: _rename_node(t, f"y; {CODE}; z"), "nodes have identifiers"),
    "a node with a line": (lambda t: _rename_node(t, f"y = 1\n    {CODE}\n    z"), "nodes have identifiers"),
    "a node called infj": (lambda t: _rename_node(t, "infj"), "infj would stand in for imaginary infinity"),
    "a node called inf": (lambda t: _rename_node(t, "inf"), "inf would stand in for infinity"),
    "a node that shadows an input": (lambda t: _rename_node(t, "x"), "each name is defined once"),
    "a keyword of a call": (
        lambda t: add_keyword(t, "cond", f"k={CODE}"),
        "keywords of calls are identifiers",
    ),
    "a keyword with a call": (lambda t: add_keyword(t, "cond", f"k=1, **({CODE} or {{}})"), "likewise"),
    "a keyword of an operator": (
        lambda t: add_keyword(t, "aten.linear", f"k={CODE}"),
        "keywords exist in the operator's schema",
    ),
    "an unknown keyword": (
        lambda t: add_keyword(t, "aten.linear", "weights"),
        "keywords exist in the schema",
    ),
    "a subgraph as code": (lambda t: set_subgraph(t, f"f or {CODE}"), "subgraphs have identifiers"),
    "a subgraph as a path": (lambda t: set_subgraph(t, "a.b.c"), "a subgraph's name has no dots"),
    "a subgraph called forward": (lambda t: set_subgraph(t, "forward"), "it may not replace a method"),
    "a subgraph called __class__": (
        lambda t: set_subgraph(t, "__class__"),
        "it may not replace an attribute",
    ),
    "a subgraph called training": (lambda t: set_subgraph(t, "training"), "it may not replace an attribute"),
    "a parameter that ends its text": (
        lambda t: _set_fqn(t, f'a")+({CODE})+("'),
        "names of weights cannot end the text they are pasted into",
    ),
    "a parameter with a backslash": (lambda t: _set_fqn(t, "a\\"), "no escapes in names of weights"),
    "a parameter with a line": (lambda t: _set_fqn(t, f"a\n{CODE}"), "no lines in names of weights"),
    "a parameter without a part": (lambda t: _set_fqn(t, "linear..weight"), "no empty parts"),
    "a parameter by dunders": (lambda t: _set_fqn(t, "__class__.weight"), "there is no such weight"),
    "a buffer that ends its text": (
        lambda t: _set_fqn(t, f'a")+({CODE})+("', "buffer"),
        "names of weights cannot end the text they are pasted into",
    ),
    "a forward name with a default": (
        lambda t: _set_forward_names(t, [f"x={CODE}", "options", "mode"]),
        "names of arguments are identifiers",
    ),
    "a forward name with a body": (
        lambda t: _set_forward_names(t, [_SIGNATURE_END, "options", "mode"]),
        "names of arguments are identifiers",
    ),
    "a forward name too few": (
        lambda t: _set_forward_names(t, ["x", "options"]),
        "each argument has its name",
    ),
    "forward names of others": (
        lambda t: _set_forward_names(t, ["x", "options", "how"]),
        "keywords are those of the structure of inputs",
    ),
    "forward names in another order": (
        lambda t: _set_forward_names(t, ["x", "mode", "options"]),
        "each keyword has the name of its value",
    ),
    "forward names twice": (lambda t: _set_forward_names(t, ["x", "x", "x"]), "each argument has its name"),
    "a constant input as code": (
        lambda t: _set_constant_name(t, f"m={CODE}"),
        "placeholders are identifiers",
    ),
    "a module as code": (lambda t: _set_call_fqn(t, f'a")+({CODE})+("'), "modules have plain names"),
}
for _name, (_change, _proves) in _NAMES.items():
    add("names", _name, _proves, tree(_change))


def _weights_named(names: dict[str, str]) -> Callable[[], bytes]:
    """The archive with other names of weights, in its program and for their payloads."""

    def make() -> bytes:
        found, config = json.loads(honest_records()[PROGRAM]), json.loads(honest_records()[WEIGHTS])
        for spec in found["graph_module"]["signature"]["input_specs"]:
            if "parameter" in spec:
                spec["parameter"]["parameter_name"] = names[spec["parameter"]["parameter_name"]]
        config["config"] = {names.get(old, old): payload for old, payload in config["config"].items()}
        return records({PROGRAM: json.dumps(found).encode(), WEIGHTS: json.dumps(config).encode()})

    return make


for _name, _weight, _bias, _proves in (
    ("a weight before that of the first call", "b@1.w", "b.w", "no weight takes another's place"),
    ("a weight in a weight", "a", "a.b", "weights hold no weights"),
    ("a weight in the place of a subgraph", "true_graph_0", "b", "no weight takes the place of a subgraph"),
    ("a weight called forward", "forward", "b", "no weight takes the place of a method"),
    ("a weight called graph", "graph", "b", "no weight takes the place of a part of torch.fx"),
    ("a weight called _guards_fn", "_guards_fn", "b", "no weight takes the place of the guards"),
    ("a weight within _in_spec", "_in_spec.w", "b", "no module takes the place of the tree spec"),
    ("a weight that a subgraph has", "true_graph_0.code", "b", "no weight takes the place of its code"),
):
    add("names", _name, _proves, _weights_named({"linear.weight": _weight, "linear.bias": _bias}))


# -- texts ------------------------------------------------------------------------------------------------


def _set_constant(found: Tree, value: str) -> None:
    for spec, argument in zip(signature(found).input_specs, graph(found).inputs, strict=True):
        if spec.type == "constant_input":
            spec.constant_input.value = types.ConstantValue.of_string(value)
            argument.as_string = value


def _set_key(found: Tree, key: Any) -> None:
    spec = json.loads(root(found).in_spec)
    spec[1]["children_spec"][1]["children_spec"][0]["context"] = json.dumps([key])
    root(found).in_spec = json.dumps(spec)


_TEXTS = {
    "a constant that ends its text": f"' + str({CODE}) + '",
    "a constant with a double quote": f'" + str({CODE}) + "',
    "a constant with a backslash": "\\",
    "a constant with an escape": f"\\x27 + str({CODE}) + \\x27",
    "a constant with a line": f"\n{CODE}\n",
    "a constant with a separator": f"\u2028{CODE}",
    "a constant with a null": f"\0{CODE}",
}
for _name, _text in _TEXTS.items():
    add(
        "texts",
        _name,
        "constant texts cannot end the text they are pasted into",
        tree(lambda t, _text=_text: _set_constant(t, _text)),
    )
_KEYS = {
    "a key that ends its text": f"'] + [{CODE}] + ['",
    "a key with a double quote": f'"] + [{CODE}] + ["',
    "a key with a line": f"by\n{CODE}",
    "a key with braces": f"'{{{CODE}}}'",
}
for _name, _text in _KEYS.items():
    add(
        "texts",
        _name,
        "keys cannot end the text they are pasted into",
        tree(lambda t, k=_text: _set_key(t, k)),
    )


# -- targets ----------------------------------------------------------------------------------------------


def _set_target(found: Tree, target: str, argument: str = SHELL) -> None:
    node = call(found, "aten.linear")
    node.target = target
    node.inputs = [
        types.NamedArgument(name="", arg=A.of_string(argument), kind=types.ArgumentKind.POSITIONAL)
    ]


_TARGETS = {
    "posix.system": SHELL,
    "os.system": SHELL,
    "torch.os.system": SHELL,
    "torch._os.system": SHELL,
    "torch.sys.modules": SHELL,
    "math.__loader__.load_module": TRAP,
    "_operator.__loader__.load_module": TRAP,
    "builtins.eval": CODE,
    "builtins.exec": CODE,
    "torch.builtins.eval": CODE,
    "torch._dynamo.utils.import_submodule": TRAP,
    "torch.hub.load": TRAP,
    "torch.load": "model.pt2",
    "torch.serialization.load": "model.pt2",
    "torch.classes.load_library": "model.so",
    "torch.ops.load_library": "model.so",
    "torch.ops.higher_order.__class__": SHELL,
    "torch.ops.aten.__class__.__init__": SHELL,
    "torch.ops.aten.add.__call__": SHELL,
    "torch.ops.aten.add": SHELL,
    "torch.ops.__loader__.load_module": TRAP,
    "torch.ops..add.default": SHELL,
    "torch.ops.aten.add.Tensor ": SHELL,
    "torch.ops.aten.add.Tensor\n": SHELL,
    "torch.utils._pytree.tree_map": SHELL,
    "torch.testing._internal.common_utils.shell": SHELL,
    "subprocess.getoutput": SHELL,
    "operator.methodcaller": SHELL,
    "_operator.attrgetter": SHELL,
    "_operator.call": SHELL,
    "": SHELL,
    "#os:system": SHELL,
}
for _target, _argument in _TARGETS.items():
    add(
        "targets",
        f"{_target!r} as target",
        "targets are operators of the dispatcher, or functions of a table",
        tree(lambda t, f=_target, a=_argument: _set_target(t, f, a)),
    )
for _target in ("torch.os.system", "builtins.eval", "torch.ops.aten.__class__", "_operator.add", "print"):
    add(
        "targets",
        f"{_target!r} as an argument",
        "operators among arguments obey the rules of targets",
        tree(lambda t, f=_target: setattr(call(t, "cond").inputs[0], "arg", A.of_operator(f))),
    )


# -- tree specs -------------------------------------------------------------------------------------------


def _container(found: Tree, kind: str, context: Any) -> None:
    spec = json.loads(root(found).in_spec)
    options = spec[1]["children_spec"][1]["children_spec"][0]
    options["type"], options["context"] = kind, context
    root(found).in_spec = json.dumps(spec)


def _raw_spec(value: str) -> Callable[[Tree], None]:
    return lambda found: setattr(root(found), "in_spec", value)


def _factory(module: str, name: str) -> dict[str, Any]:
    return {"default_factory_module": module, "default_factory_name": name, "dict_context": ["by"]}


def _enum(module: str, name: str) -> str:
    return json.dumps([{"__enum__": True, "fqn": f"{module}:{name}", "name": "A"}])


_LEAF = '{"type": null, "context": null, "children_spec": []}'


def _spec(kind: str, context: str, leaves: int) -> str:
    children = ", ".join([_LEAF] * leaves)
    return f'[1, {{"type": "{kind}", "context": {context}, "children_spec": [{children}]}}]'


_SPECS: dict[str, tuple[Callable[[Tree], object], str]] = {
    "an enum of a module": (
        lambda t: _container(t, "builtins.dict", _enum(TRAP, "E")),
        "an enum's module is never imported",
    ),
    "an enum below a module": (
        lambda t: _container(t, "builtins.dict", _enum("os", "environ")),
        "an enum is an enum",
    ),
    "an enum by dunders": (
        lambda t: _container(t, "builtins.dict", _enum("os", "__loader__.load_module")),
        "an enum is found in namespaces, never by attribute",
    ),
    "an enum with code in its name": (
        lambda t: _container(t, "builtins.dict", _enum(TRAP, f"x or {CODE}")),
        "names of classes are identifiers",
    ),
    "an enum on the right": (
        lambda t: setattr(
            root(t),
            "out_spec",
            _spec("builtins.dict", json.dumps(_enum(TRAP, "E")), 1),
        ),
        "the structure of outputs is no other",
    ),
    "a factory of a module": (
        lambda t: _container(t, "collections.defaultdict", _factory(TRAP, "f")),
        "a factory's module is never imported",
    ),
    "a factory that runs code": (
        lambda t: _container(t, "collections.defaultdict", _factory("builtins", "eval")),
        "factories are those of a table",
    ),
    "a factory by dots": (
        lambda t: _container(t, "collections.defaultdict", _factory("os", "system")),
        "factories are those of a table",
    ),
    "a class that is not registered": (
        lambda t: _container(t, f"{TRAP}.C", "null"),
        "classes are those that pytree knows",
    ),
    "a class of the standard library": (
        lambda t: _container(t, "subprocess.Popen", f'["{SHELL}"]'),
        "classes are those that pytree knows",
    ),
    "a named tuple that is none": (
        lambda t: _container(t, "collections.namedtuple", "builtins.dict"),
        "a named tuple is a registered one",
    ),
    "a named tuple of a module": (
        lambda t: _container(t, "collections.namedtuple", f"{TRAP}.T"),
        "its module is never imported",
    ),
    "the name for no name": (
        lambda t: _container(t, "NO_SERIALIZED_TYPE_NAME_FOUND", "null"),
        "pytree's mark for classes without a name is no class",
    ),
    "too many keys": (lambda t: _container(t, "builtins.dict", '["by", "to"]'), "one key for each child"),
    "a key twice": (lambda t: _container(t, "builtins.dict", '["by", "by"]'), "keys are distinct"),
    "a key of no kind": (lambda t: _container(t, "builtins.dict", '[{"a": 1}]'), "a key is plain"),
    "a leaf too many": (_raw_spec(f"[1, {_LEAF}]"), "as many leaves as inputs"),
    "no call": (
        _raw_spec(_spec("builtins.list", '"null"', 3)),
        "inputs are a tuple and a dict",
    ),
    "another protocol": (_raw_spec(f"[2, {_LEAF}]"), "the protocol is known"),
    "no JSON": (_raw_spec(f"[1, {CODE}]"), "a spec is JSON"),
    "a number that is none": (_raw_spec("[1, NaN]"), "a spec is strict JSON"),
    "nothing": (_raw_spec(""), "a spec is JSON"),
    "a deque that is too short": (lambda t: _container(t, "collections.deque", "0"), "it holds its children"),
}
for _name, (_change, _proves) in _SPECS.items():
    add("treespecs", _name, _proves, tree(_change))


# -- guards -----------------------------------------------------------------------------------------------

_X = "L['args'][0]"
_GUARDS = {
    "a call": CODE,
    "an import": f"__import__('os').system({SHELL!r}) == 0",
    "a statement": f"True; {CODE}",
    "a line": f"True\n{CODE}",
    "the end of its text": f"True, '')\n  {CODE}\n  torch._assert(True",
    "a subscript": f"L['x'].size()[{CODE}] == 1",
    "a method": f"L['x'].apply_(lambda x: {CODE}) is None",
    "a dunder": f"L['x'].__class__.__init__.__globals__['__builtins__']['eval']({CODE!r}) == 1",
    "a lambda": f"(lambda: {CODE})() is None",
    "a comprehension": f"[{CODE} for x in (1,)] == [None]",
    "an f-string": f"f'{{{CODE}}}' == 'None'",
    "a walrus": f"(x := {CODE}) is None",
    "a decorated default": f"max(1, key={CODE}) == 1",
    "a star": f"max(*[{CODE}, 1]) == 1",
    "a function of torch": f"torch.load({MARKER!r}) == 1",
    "a function of math": f"math.__loader__.load_module({TRAP!r}) == 1",
    "a variable": "x == 1",
    "a text": "'a' * 10 == 'b'",
    "an await": f"(await {CODE}) == 1",
    "a yield": f"(yield {CODE}) == 1",
    "a key with a quote": f"L[\"x'] + [{CODE}] + ['\"].size()[0] == 1",
    "a comment": f"True # {CODE}",
    "a null": f"True\0{CODE}",
    "nothing": "",
    "a continued line": f"True \\\n or {CODE}",
    "letters that fold": f"\uff4f\uff50\uff45\uff4e('{MARKER}', 'w') == 1",
    "a coding line": f"# coding: utf-7\n+AG8- or {CODE}",
}
#: Guards of the language that cannot be computed: the call would end in an error of Python.
_GUARDS |= {
    "no input": "L['evil'].size()[0] == 1",
    "no key of an input": "L['options']['evil'].size()[0] == 1",
    "no input by number": "L['flat_args'][99].size()[0] == 1",
    "a text as a number": "L['mode'] > 1",
    "a tensor as a number": "L['x'] > 1",
    "no dimension": "L['x'].size()[2] == 1",
    "all sizes": "L['x'].size() == 1",
    "too few arguments": "max() == 1",
    "too many arguments": "abs(1, 2) == 1",
    "a division by zero": "1 // 0 == 1",
    "a root of nothing real": "math.sqrt(-1) == 1",
    "a number": "1",
}
#: Guards that the call computes, and no pass.
_GUARDS |= {
    "a sum of conditions": "(L['x'].size()[0] > 1) + 1 == 2",
    "a number as a condition": "not L['x'].size()[0]",
    "a floor of a float": "L['x'].size()[0] // 0.5 > 1",
}
#: Guards that say something true, and load without what is no part of their syntax tree.
_TRUE = ("a comment",)
for _name, _text in _GUARDS.items():
    add(
        "guards",
        _name,
        "guards compute with sizes and numbers, and are set back from their checked syntax tree",
        tree(lambda t, _text=_text: t.guards_code.append(_text)),
        refused=_name not in _TRUE,
    )


# -- metadata ---------------------------------------------------------------------------------------------


def _note(key: str, value: str) -> Callable[[Tree], None]:
    def change(found: Tree) -> None:
        for node in graph(found).nodes:
            node.metadata[key] = value

    return change


def _one_key(found: Tree) -> None:
    for number, node in enumerate(graph(found).nodes):
        node.metadata["nn_module_stack"] = f"k,,m.M;l,path{number},m.L"


_CLASS_OF = "torch.os.system"
_METADATA: dict[str, tuple[Callable[[Tree], object], str, bool]] = {
    "a source function": (
        _note("source_fn_stack", f"x,{_CLASS_OF}"),
        "names of functions are looked up in a table",
        False,
    ),
    "a source by dunders": (_note("source_fn_stack", "x,torch.nn.__loader__.load_module"), "likewise", False),
    "a source in a module": (_note("source_fn_stack", f"x,{TRAP}.f"), "its module is never imported", False),
    "a module stack": (
        _note("nn_module_stack", f"k,p[{CODE}],{TRAP}.C"),
        "classes of modules stay text",
        False,
    ),
    "a torch function": (_note("torch_fn", f"a;{CODE}"), "names stay text", False),
    "a stack trace": (
        _note("stack_trace", f'File "f", line 1, in g\n    {CODE}\n'),
        "traces stay text",
        False,
    ),
    "a stack trace that ends a comment": (
        _note("stack_trace", f"# x\n{CODE}\n'''\n{CODE}"),
        "likewise",
        False,
    ),
    "a note with code": (_note("custom", json.dumps({"__reduce__": CODE})), "notes stay data", False),
    "a note that is no JSON": (_note("custom", CODE), "notes are JSON", True),
    "a note as a pickle": (
        _note("custom", "gASVIQAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAR0cnVllIWUUpQu"),
        "notes are JSON",
        True,
    ),
    "sources that are no list": (_note("from_node", '{"name": 1}'), "sources have their types", True),
    "sources of another type": (_note("from_node", '[{"name": [1]}]'), "sources have their types", True),
    "half a source function": (_note("source_fn_stack", "x"), "each entry has two parts", True),
    "a module path that ends a text": (
        _note("nn_module_stack", f'k,,m.M;l,a" + {CODE} + ",m.L'),
        "paths that unflattening would run are refused",
        True,
    ),
    "modules of one key": (_one_key, "unflattening takes no module for another", True),
    "half a module stack": (_note("nn_module_stack", "a,b"), "each entry has three parts", True),
    "a verifier": (lambda t: t.verifiers.append(f"x or {CODE}"), "dialects are registered ones", True),
    "a note on the module": (
        lambda t: t.graph_module.metadata.update(custom=CODE),
        "notes are JSON",
        True,
    ),
    "fields of a named tuple": (
        lambda t: t.graph_module.treespec_namedtuple_fields.update(
            {"a": types.NamedTupleDef(field_names=[f"x, {CODE}"])}
        ),
        "fields are identifiers",
        True,
    ),
    "a range named as code": (
        lambda t: t.range_constraints.update({CODE: types.RangeConstraint(min_val=0, max_val=1)}),
        "names of ranges are compared, never parsed",
        False,
    ),
}
for _name, (_change, _proves, _refused) in _METADATA.items():
    add("metadata", _name, _proves, tree(_change), refused=_refused)
