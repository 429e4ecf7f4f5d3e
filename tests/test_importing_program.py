"""Programs: what we read from PyTorch's trees is what PyTorch reads, down to the symbols and the storages."""

from __future__ import annotations

import ast
import copy
import operator
import re
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import sympy
import torch
from pt2wire.errors import DeserializeError
from pt2wire.generated import json_codec, types
from torch import Tensor
from torch._export.db.examples import all_examples
from torch.export import ExportedProgram
from torch.export.exported_program import _get_shape_env
from torch.fx import GraphModule
from torch.utils import _pytree as pytree

from .helpers.examples import EXAMPLES
from .helpers.models import MODELS
from .helpers.programs import describe_program, describe_value, differences
from .helpers.trees import read, torch_read, torch_tree

# One model a feature; the wide test takes them all.
_SAMPLE = [
    "dim_derived_by_factor",
    "unbacked_float_from_item",
    "nested_containers_dynamic",
    "weights_aliased",
    "training_ir",
    "core_aten_ir",
    "list_outputs_dynamic",
    "some_outputs_unused",
    "derived_expressions_in_values",
    "metadata_of_strict_export",
]

# What PyTorch does not write, with its reason.
_NOT_WRITTEN = {
    "weights_sharing_bytes_between_dtypes": "Cannot save multiple tensors or storages that view",
}

# What PyTorch reads as something else, with what it does; test_oracles_models.py compares with the original.
_READ_WRONGLY = {
    "sparse_coo_inputs_and_outputs": "PyTorch's reader makes strided values of sparse ones",
    "higher_order_operators": "PyTorch's reader renames calls that give nothing",
    "jvp": "PyTorch's reader renames calls that give nothing",
    "jvp_of_jvp_strict": "PyTorch's reader renames calls that give nothing",
    "vmap": "PyTorch's reader renames calls that give nothing",
}

# Where PyTorch's reader knows other things of symbols than tracing left, while ours reads what tracing left.
_LEARNED = {
    "guard_as_runtime_assert": "it learns from asserts while it reads their sizes",
    "unbacked_sizes_from_tolist": "it narrows ranges by asserts",
    "while_loop_with_weights": "it forgets symbols that no node makes",
}

# What cannot be read twice, as its weights cannot be copied; test_subclasses.py reads it from files.
_NOT_COPIED = {"weights_of_subclasses", "weights_of_subclasses_that_share_memory"}

# Where we keep what PyTorch's reader loses.
_EXPECTED = (
    ("value offsets", "PyTorch's reader makes all storage offsets 0"),
    ("_sym_sqrt value", "it makes an unknown function of OpaqueUnaryFn_sqrt"),
    ("reshape value", "it makes sympy's Min of torch's"),
    ("ranges", "it makes integer bounds of a float's"),
    ("value container", "it makes tuples of lists that operators return"),
)


def _unexpected(expected: ExportedProgram, found: ExportedProgram) -> list[str]:
    return [
        str(difference)
        for difference in differences(describe_program(expected), describe_program(found))
        if not any(kind in difference.path for kind, _ in _EXPECTED)
    ]


def _program(name: str) -> ExportedProgram:
    if name in MODELS:
        return MODELS[name].program()
    case = all_examples()[name]
    return torch.export.export(
        case.model, case.example_args, case.example_kwargs, dynamic_shapes=case.dynamic_shapes
    )


def _operators(name: str) -> Sequence[str]:
    return MODELS[name].operators if name in MODELS else ()


def _check_as_pytorch_reads_it(name: str) -> None:
    ep = _program(name)
    if name in _NOT_WRITTEN:
        with pytest.raises(RuntimeError, match=_NOT_WRITTEN[name]):
            torch_tree(ep)
        pytest.skip(f"PyTorch does not write it: {_NOT_WRITTEN[name]}")
    tree = torch_tree(ep)
    before = json_codec.encode(tree)  # as bytes: NaN equals itself
    expected, found = _without_additions(torch_read(tree, ep)), read(tree, ep, _operators(name))
    assert json_codec.encode(tree) == before, "reading changed the tree"
    if name in _READ_WRONGLY:
        assert _unexpected(expected, found) != []
        pytest.skip(_READ_WRONGLY[name])
    assert _unexpected(expected, found) == []
    ours, theirs = _environment(found), _environment(expected)
    if name in _LEARNED:
        assert ours != theirs, f"{name} needs no exception any more"
    else:
        assert ours == theirs
    assert _storages(found) == _storages(expected)
    assert [*_modules(found.graph_module)] == [*_modules(expected.graph_module)]
    assert found.verifiers == expected.verifiers
    assert [ast.dump(ast.parse(guard)) for guard in found._guards_code] == [
        ast.dump(ast.parse(guard)) for guard in expected._guards_code
    ]


def _without_additions(ep: ExportedProgram) -> ExportedProgram:
    """Undo what PyTorch's reader adds: nodes for outputs that nothing takes, symbols that inputs define."""
    for module in ep.graph_module.modules():
        if isinstance(module, GraphModule):
            for node in reversed(module.graph.nodes):
                made_up = (
                    "_unused_" in node.name or node.meta.get("val") is None or type(node.meta["val"]) is list
                )
                if node.target is operator.getitem and not node.users and made_up:
                    module.graph.erase_node(node)
                elif node.op == "placeholder":
                    node.meta.pop("unbacked_bindings", None)
            module.recompile()
    return ep


@pytest.mark.parametrize("name", _SAMPLE)
def test_a_program_is_what_pytorch_reads(name: str) -> None:
    _check_as_pytorch_reads_it(name)


@pytest.mark.wide
@pytest.mark.parametrize("name", [*sorted(set(MODELS) - set(_SAMPLE) - _NOT_COPIED), *EXAMPLES])
def test_every_program_is_what_pytorch_reads(name: str) -> None:
    _check_as_pytorch_reads_it(name)


def _shape_env(ep: ExportedProgram) -> Any:
    return _get_shape_env(ep.graph_module)


def _environment(ep: ExportedProgram) -> dict[str, str]:
    """What the ShapeEnv knows about the symbols before it learns the guards, which PyTorch's never does.

    PyTorch's does not learn either that 0 and 1 are special: see `Symbols.take_for_special`.
    """
    shape_env = _shape_env(ep)
    if shape_env is None:
        return {}
    shape_env = SimpleNamespace(**{**vars(shape_env), **vars(shape_env).get("_known", {})})
    floats = ("zf", "zuf")
    known: dict[str, Any] = {
        "ranges": {
            s.name: re.sub(r"^VR\[[01],", "VR[2,", str(r)) if s.name.startswith("s") else str(r)
            for s, r in shape_env.var_to_range.items()
            if s.is_Symbol and not s.name.startswith(floats)
        },
        "hints": {str(s): str(v) for s, v in shape_env.backed_var_to_val.items() if s.is_Symbol},
        "guards": [str(guard.expr) for guard in shape_env.guards],
        "asserts": {str(s): [str(a.expr) for a in x] for s, x in shape_env.deferred_runtime_asserts.items()},
    }
    for name in ("replacements", "size_like", "divisible", "axioms", "unbacked_renamings", "settings"):
        known[name] = str(getattr(shape_env, name))
    for name in ("unbacked_symint_counter", "unbacked_symfloat_counter", "num_deferred_runtime_asserts"):
        known[name] = getattr(shape_env, name)
    known["stacks"] = sorted(str(s) for s in shape_env.var_to_stack if s.is_Symbol)
    return {key: str(value) for key, value in known.items()}


def _tensors(ep: ExportedProgram) -> list[Tensor]:
    values = (node.meta.get("val") for node in ep.graph.nodes)
    return [leaf for value in values for leaf in pytree.tree_leaves(value) if isinstance(leaf, Tensor)]


def _storages(ep: ExportedProgram) -> list[int]:
    """A number for the storage of each value, equal where storages are."""
    numbers: dict[int, int] = {}
    return [numbers.setdefault(t.untyped_storage()._cdata, len(numbers)) for t in _tensors(ep)]


def _modules(module: GraphModule) -> Iterator[Any]:
    yield (
        module.code,
        module.training,
        sorted(module.__dict__),
        [set(node.meta) for node in module.graph.nodes],
    )
    for name, child in module.named_children():
        yield name
        if isinstance(child, GraphModule):
            yield from _modules(child)


class _Checked(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Tensor, *, scale: dict[str, Tensor]) -> tuple[Tensor, int]:
        self.count += 1
        y = self.linear(x.reshape(-1, 3)) * scale["by"]
        return y, x.shape[0]


@pytest.fixture(scope="module")
def dynamic() -> ExportedProgram:
    torch.manual_seed(0)
    batch = torch.export.Dim("batch", min=2, max=9)
    inputs = (torch.randn(4, 6),), {"scale": {"by": torch.ones(8, 1)}}
    return torch.export.export(
        _Checked(),
        *inputs,
        dynamic_shapes={"x": {0: batch}, "scale": {"by": {0: 2 * batch}}},
        preserve_module_call_signature=("linear",),
    )


def _call(module: Any, batch: int) -> Any:
    torch.manual_seed(1)
    return module(torch.randn(batch, 6), scale={"by": torch.ones(2 * batch, 1)})


def test_a_program_runs_again_and_again_like_the_one_written(dynamic: ExportedProgram) -> None:
    expected, found = copy.deepcopy(dynamic).module(), read(torch_tree(dynamic), dynamic).module()
    for batch in (4, 2, 9):
        assert describe_value("", _call(found, batch)) == describe_value("", _call(expected, batch))
    assert found.count.item() == expected.count.item() == 3


def test_guards_are_checked_as_before(dynamic: ExportedProgram) -> None:
    found = read(torch_tree(dynamic), dynamic).module()
    for batch in (1, 10):
        with pytest.raises(AssertionError, match="Guard failed"):
            _call(found, batch)
    with pytest.raises(AssertionError, match="Guard failed"):
        found(torch.ones(4, 6), scale={"by": torch.ones(7, 1)})


def test_decomposition_unflattening_and_export_go_on_from_there(dynamic: ExportedProgram) -> None:
    tree = torch_tree(dynamic)
    expected, found = torch_read(tree, dynamic), read(tree, dynamic)
    # The original is the oracle: PyTorch takes the range of `2*batch` for that of a symbol, and fails.
    decomposed = found.run_decompositions()
    names = {node.name for node in dynamic.run_decompositions().graph.nodes}
    assert {node.name for node in decomposed.graph.nodes} == names
    assert describe_value("", _call(decomposed.module(), 3)) == describe_value(
        "", _call(expected.module(), 3)
    )
    flat = torch.export.unflatten(found)
    assert describe_value("", _call(flat, 3)) == describe_value(
        "", _call(torch.export.unflatten(expected), 3)
    )
    ones, weight, bias = torch.ones(2, 3), found.state_dict["linear.weight"], found.state_dict["linear.bias"]
    assert torch.equal(flat.linear(ones), torch.nn.functional.linear(ones, weight, bias))
    args, kwargs = dynamic.example_inputs
    shapes = {"x": {0: torch.export.Dim.AUTO}, "scale": {"by": {0: torch.export.Dim.AUTO}}}
    again = [
        torch.export.export(ep.module(), args, kwargs, dynamic_shapes=shapes) for ep in (expected, found)
    ]
    assert _unexpected(*again) == []


def test_a_symbol_that_appears_in_derived_sizes_only_keeps_its_hint() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.reshape(-1, 2)[1:] * 2

    size = 4 * torch.export.Dim("size", min=2, max=20)
    ep = torch.export.export(Model(), (torch.ones(8),), dynamic_shapes=({0: size},))
    hints = _shape_env(read(torch_tree(ep), ep)).backed_var_to_val
    assert [int(hint) for symbol, hint in hints.items() if symbol.is_Symbol] == [2]


def test_a_size_that_is_found_to_be_that_of_an_input_has_no_hint() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            index = x.nonzero()
            torch._check(index.size(0) == x.size(0))
            return index.squeeze(1) + x

    ep = torch.export.export(Model(), (torch.ones(6),), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    found, expected = (
        [
            (node.meta["val"].size(0).node.expr, node.meta["val"].size(0).node.hint)
            for node in program.graph.find_nodes(op="call_function", target=torch.ops.aten.nonzero.default)
        ]
        for program in (read(torch_tree(ep), ep), ep)
    )
    assert [str(size).startswith("s") for size, _ in expected] == [True]
    assert found == expected


def test_a_second_and_a_third_reading_change_nothing(dynamic: ExportedProgram) -> None:
    trees = [torch_tree(dynamic)]
    for _ in range(2):
        trees.append(torch_tree(read(trees[-1], dynamic)))
    assert trees[0].guards_code
    assert trees[0] == trees[1] == trees[2]


def test_one_mode_and_one_shape_env_are_behind_all_values(dynamic: ExportedProgram) -> None:
    found = read(torch_tree(dynamic), dynamic)
    (mode,) = {tensor.fake_mode for tensor in _tensors(found)}  # type: ignore[attr-defined]
    sizes = [size for t in _tensors(found) for size in t.shape if isinstance(size, torch.SymInt)]
    assert sizes
    assert {size.node.shape_env for size in sizes} == {mode.shape_env}
    assert all(
        node.meta["val"].device.type == "cpu" for node in found.graph.nodes if node.op == "placeholder"
    )


@pytest.mark.parametrize("name", ["some_outputs_unused", "core_aten_ir", "list_outputs_dynamic"])
def test_unused_outputs_add_no_nodes(name: str) -> None:
    ep = MODELS[name].program()
    found = read(torch_tree(ep), ep)
    assert [node.name for node in found.graph.nodes] == [node.name for node in ep.graph.nodes]
    assert torch_tree(found).graph_module == torch_tree(ep).graph_module


def test_text_outputs_are_read() -> None:
    """PyTorch writes them, and does not read them back."""

    class Model(torch.nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, str]:
            return x + 1, "text"

    ep = torch.export.export(Model(), (torch.ones(2),))
    assert read(torch_tree(ep), ep).module()(torch.ones(2))[1] == "text"


def test_ranges_of_lost_symbols_are_left_out(dynamic: ExportedProgram) -> None:
    tree = torch_tree(dynamic)
    tree.range_constraints["s999"] = types.RangeConstraint(min_val=2, max_val=4)
    assert "s999" not in map(str, read(tree, dynamic).range_constraints)


def test_unbacked_symbols_made_later_are_new_ones(dynamic: ExportedProgram) -> None:
    tree = torch_tree(dynamic)
    tree.range_constraints["u9000000000"] = types.RangeConstraint(min_val=None, max_val=None)
    shape_env = _shape_env(read(tree, dynamic))
    assert str(shape_env.create_unbacked_symint()) == "u9000000001"  # at once, without counting


def test_an_empty_range_is_refused(dynamic: ExportedProgram) -> None:
    tree = torch_tree(dynamic)
    name = next(iter(tree.range_constraints))
    tree.range_constraints[name] = types.RangeConstraint(min_val=5, max_val=4)
    with pytest.raises(DeserializeError) as caught:
        read(tree, dynamic)
    assert str(caught.value) == (
        f"range_constraints['{name}']: expected a range whose minimum is not above its maximum, found [5, 4]"
    )


def test_an_unknown_verifier_is_refused(dynamic: ExportedProgram) -> None:
    tree = torch_tree(dynamic)
    tree.verifiers = ["TRAINING", "SOMEBODYS"]
    with pytest.raises(DeserializeError) as caught:
        read(tree, dynamic)
    assert str(caught.value) == (
        "verifiers[1]: expected a dialect whose verifier is registered, found 'SOMEBODYS'. Import the "
        "library that defines the dialect before loading."
    )


def test_what_pytorch_refuses_is_our_error_with_its_own_as_cause(dynamic: ExportedProgram) -> None:
    with pytest.raises(DeserializeError, match="refused by torch with SpecViolationError") as caught:
        read(torch_tree(dynamic))  # without its weights
    assert type(caught.value.__cause__).__name__ == "SpecViolationError"


def test_symbols_keep_their_assumptions(dynamic: ExportedProgram) -> None:
    symbols = read(torch_tree(dynamic), dynamic).range_constraints
    assert {sympy.srepr(s) for s in symbols} == {sympy.srepr(s) for s in dynamic.range_constraints}
