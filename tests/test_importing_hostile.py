"""Text from a file that would run if anything evaluated it: it never does, at no stage of a program."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from pt2wire.errors import DeserializeError
from pt2wire.generated import types
from torch.export import ExportedProgram

from .helpers.hostile import add_keyword, call, root, set_subgraph, sizes
from .helpers.hostile import inputs as honest_inputs
from .helpers.hostile import program as honest_program
from .helpers.trees import read, torch_read, torch_tree

Tree = types.ExportedProgram
A = types.Argument


@pytest.fixture(scope="module")
def program() -> ExportedProgram:
    return honest_program()


@pytest.fixture
def marker(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "marker"
    yield path
    assert not path.exists(), "text from the file was run"


def _rename(tree: Tree, index: int, name: str) -> None:
    graph, spec = tree.graph_module.graph, tree.graph_module.signature.input_specs[index]
    old = graph.inputs[index].as_tensor.name
    graph.tensor_values[name] = graph.tensor_values.pop(old)
    graph.inputs[index].as_tensor.name = name
    arg = spec.value.arg
    (arg.as_tensor if isinstance(arg, A) else arg).name = name
    for node in graph.nodes:
        for item in node.inputs:
            if item.arg.type == "as_tensor" and item.arg.as_tensor.name == old:
                item.arg.as_tensor.name = name


def _set_expression(tree: Tree, text: str) -> None:
    sizes(tree)[0].as_expr.expr_str = text


def _set_constant(tree: Tree, text: str) -> None:
    for spec, argument in zip(
        tree.graph_module.signature.input_specs, tree.graph_module.graph.inputs, strict=True
    ):
        if spec.type == "constant_input":
            spec.constant_input.value = types.ConstantValue.of_string(text)
            argument.as_string = text


def _set_metadata(key: str, form: str) -> Callable[[Tree, str], None]:
    def change(tree: Tree, text: str) -> None:
        for node in tree.graph_module.graph.nodes:
            node.metadata[key] = form.format(text)

    return change


def _set_key(tree: Tree, text: str) -> None:
    import json

    spec = json.loads(root(tree).in_spec)
    spec[1]["children_spec"][1]["children_spec"][0]["context"] = json.dumps([text])
    root(tree).in_spec = json.dumps(spec)


def _set_parameter(tree: Tree, text: str) -> None:
    next(
        s for s in tree.graph_module.signature.input_specs if s.type == "parameter"
    ).parameter.parameter_name = text


def _set_target(tree: Tree, text: str) -> None:
    node = call(tree, "aten.linear")
    node.target = text
    node.inputs = [types.NamedArgument(name="", arg=A.of_string("true"), kind=types.ArgumentKind.POSITIONAL)]


def _set_operator(tree: Tree, text: str) -> None:
    call(tree, "cond").inputs[0].arg = A.of_operator(text)


def _enum(tree: Tree, text: str) -> None:
    import json

    spec = json.loads(root(tree).in_spec)
    marker = [{"__enum__": True, "fqn": "pt2wire_hostile_module:A", "name": "B"}]
    spec[1]["children_spec"][1]["children_spec"][0]["context"] = json.dumps(marker)
    root(tree).in_spec = json.dumps(spec)


_WAYS_IN: dict[str, Callable[[Tree, str], None]] = {
    "expression": lambda tree, code: _set_expression(tree, code),
    "expression in Max": lambda tree, code: _set_expression(tree, f"Max(Integer(3), {code!r})"),
    "expression as symbol name": lambda tree, code: _set_expression(tree, f"Symbol({code!r})"),
    "expression with a lambda": lambda tree, code: _set_expression(tree, f"Lambda(Symbol('x'), {code})"),
    "input name": lambda tree, code: _rename(tree, 0, f"x={code}"),
    "input name with a newline": lambda tree, code: _rename(
        tree, 0, f"x):\n    {code}\n    return (lambda x: 0)(0"
    ),
    "forward argument name": lambda tree, code: setattr(root(tree), "forward_arg_names", [f"x={code}"]),
    "keyword of a call": lambda tree, code: add_keyword(tree, "cond", f"k={code}"),
    "subgraph name": set_subgraph,
    "parameter name": lambda tree, code: _set_parameter(tree, f'a")+({code})+("'),
    "constant input": lambda tree, code: _set_constant(tree, f"' + str({code}) + '"),
    "constant input with a double quote": lambda tree, code: _set_constant(tree, f'" + str({code}) + "'),
    "dictionary key": lambda tree, code: _set_key(tree, f"'] + [{code}] + ['"),
    "enum key": _enum,
    "target": lambda tree, code: _set_target(tree, "posix.system"),
    "target below torch": lambda tree, code: _set_target(tree, "torch.os.system"),
    "target below math": lambda tree, code: _set_target(tree, "math.__loader__.load_module"),
    "operator argument": lambda tree, code: _set_operator(tree, "torch.os.system"),
    "guard": lambda tree, code: tree.guards_code.append(code),
    "guard in a subscript": lambda tree, code: tree.guards_code.append(f"L['x'].size()[{code}] == 1"),
    "guard with a newline": lambda tree, code: tree.guards_code.append(
        f"True, '')\n  {code}\n  torch._assert(True"
    ),
    "verifier": lambda tree, code: tree.verifiers.append(code),
    "range of a name that is code": lambda tree, code: tree.range_constraints.update(
        {code: types.RangeConstraint(min_val=0, max_val=1)}
    ),
    "stack trace": _set_metadata("stack_trace", "{}"),
    "stack trace with a newline": _set_metadata("stack_trace", 'File "f", line 1, in g\n{}\n'),
    "source function": _set_metadata("source_fn_stack", "x,torch.os.system"),
    "module stack": _set_metadata("nn_module_stack", "k,p[{}],torch.os.system"),
    "torch function": _set_metadata("torch_fn", "a;{}"),
}


@pytest.mark.parametrize("name", _WAYS_IN)
@pytest.mark.filterwarnings("ignore")
def test_text_from_a_file_is_never_run(name: str, program: ExportedProgram, marker: Path) -> None:
    tree = torch_tree(program)
    _WAYS_IN[name](tree, f"open({str(marker)!r}, 'w').close()")
    try:
        ep = read(tree, program)
    except DeserializeError as error:
        assert error.path, f"an error without a path: {error}"
        return
    inputs = honest_inputs()
    flat = torch.utils._pytree.tree_leaves(inputs)
    weights = [ep.state_dict[n] for n in (*ep.graph_signature.parameters, *ep.graph_signature.buffers)]
    for stage in (
        lambda: ep.module()(*inputs[0], **inputs[1]),
        lambda: ep.run_decompositions().module()(*inputs[0], **inputs[1]),
        lambda: torch.fx.Interpreter(ep.graph_module).run(*weights, *flat),
        lambda: torch.export.unflatten(ep)(*inputs[0], **inputs[1]),
        lambda: torch.compile(ep.module(), backend="eager")(*inputs[0], **inputs[1]),
        lambda: ep.graph_module.print_readable(print_output=False),
        lambda: str(ep),
    ):
        with contextlib.suppress(Exception):
            stage()


def test_the_payloads_are_live(program: ExportedProgram, tmp_path: Path) -> None:
    """The control: PyTorch's reader runs such text."""
    marker = tmp_path / "marker"
    tree = torch_tree(program)
    _set_expression(tree, f"Max(Integer(3), {f'''open({str(marker)!r}, 'w').close()'''!r})")
    with warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        torch_read(tree, program)
    assert marker.exists()


def test_refusals_of_each_way_in(program: ExportedProgram) -> None:
    """What may not even load; the rest loads, and stays text."""
    loaded = set()
    for name, change in _WAYS_IN.items():
        tree = copy.deepcopy(torch_tree(program))
        change(tree, "open('f')")
        with contextlib.suppress(DeserializeError):
            read(tree, program)
            loaded.add(name)
    assert loaded == {
        "dictionary key",  # refused before, by validation
        "range of a name that is code",
        "stack trace",
        "stack trace with a newline",
        "source function",
        "module stack",
        "torch function",
    }
