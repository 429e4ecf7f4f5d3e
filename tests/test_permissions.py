"""What a caller can permit a file beyond the default: pickles, operators, classes, and larger limits."""

from __future__ import annotations

import ast
import copy
import enum
import io
import json
import re
import warnings
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire import DeserializeError, Limits, UnsafeArtifactError
from pt2wire.classes import find_class
from pt2wire.generated import types
from pt2wire.limits import raising
from pt2wire.permissions import permit
from torch import nn
from torch._export.serde import serialize as torch_serialize
from torch.export.experimental import _export_forward_backward

from .helpers.archives import (
    INPUT,
    Marker,
    linear_archive,
    linear_program,
    pickled,
    record,
    saved,
    with_records,
)
from .helpers.lies import tree_of

Tree = types.ExportedProgram

# -- pickles ----------------------------------------------------------------------------------------------


class Box:
    """A class of somebody's own in a program's inputs."""

    def __init__(self, value: torch.Tensor) -> None:
        self.value = value


torch.utils._pytree.register_pytree_node(
    Box,
    lambda box: ([box.value], None),
    lambda children, context: Box(*children),
    serialized_type_name="tests.permissions.Box",
    to_dumpable_context=lambda context: None,
    from_dumpable_context=lambda dumped: None,
    flatten_with_keys_fn=lambda box: ([(torch.utils._pytree.GetAttrKey("value"), box.value)], None),
)


class Boxed(torch.nn.Module):
    def forward(self, box: Box) -> torch.Tensor:
        return box.value * 2


def _boxed() -> torch.export.ExportedProgram:
    return torch.export.export(Boxed(), (Box(torch.arange(3.0)),))


def test_example_inputs_of_classes_come_back_with_allow_pickle() -> None:
    file = io.BytesIO()
    torch.export.save(_boxed(), file)
    with pytest.warns(UserWarning, match=r"stand-ins .* without running code of .*Box\. Pass allow_pickle="):
        stand_ins = pt2wire.load(file).example_inputs
    assert stand_ins is not None and stand_ins[0][0].value.is_meta
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opened = pt2wire.load(file, allow_pickle=True).example_inputs
    assert opened is not None and torch.equal(opened[0][0].value, torch.arange(3.0))


def _with_pickled_weight(content: bytes) -> bytes:
    """The program with its first weight as a pickle, as PyTorch stores tensors of classes of their own."""
    data = saved(linear_program(), formats=("json",))
    name = "data/weights/model_weights_config.json"
    config = json.loads(record(data, name))
    entry = config["config"]["linear.weight"]
    entry |= {"use_pickle": True, "path_name": "weight_9", "is_param": True}
    changes = {
        name: json.dumps(config).encode(),
        "data/weights/weight_9": content,
        "thrift/index.compact": None,
    }
    return with_records(data, changes)


def test_pickled_weights_are_opened_only_with_allow_pickle(tmp_path: Path) -> None:
    weight = torch.nn.Parameter(torch.full((3, 4), 2.0))
    honest = _with_pickled_weight(pickled(weight))
    with pytest.raises(UnsafeArtifactError, match=r"linear\.weight.*Pass allow_pickle=True if you trust"):
        pt2wire.load(io.BytesIO(honest))
    loaded = pt2wire.load(io.BytesIO(honest), allow_pickle=True)
    assert torch.equal(loaded.state_dict["linear.weight"], weight)
    assert loaded.module()(INPUT).shape == (2, 3)

    marker = tmp_path / "marker"
    hostile = io.BytesIO(_with_pickled_weight(pickled(Marker(marker))))
    with pytest.raises(UnsafeArtifactError):
        pt2wire.load(hostile)
    assert [finding.rule for finding in pt2wire.validate(hostile)] == ["payload-pickled"]
    assert not marker.exists()
    with pytest.raises(DeserializeError, match="expected a tensor in a pickle, found int"):
        pt2wire.load(hostile, allow_pickle=True)
    assert marker.exists(), "the control: that pickle runs when it is permitted"


def test_artifacts_of_others_are_opened_only_with_allow_pickle() -> None:
    artifact = torch_serialize.serialize(linear_program())
    artifact.constants = pickled(
        {"constant": torch.ones(3), "factor": torch.ones(()), "x": Box(torch.ones(1))}
    )
    with pytest.raises(UnsafeArtifactError, match=r"constants: .* Pass allow_pickle=True"):
        pt2wire.deserialize(artifact)
    assert "x" in pt2wire.deserialize(artifact, allow_pickle=True).constants


def test_damaged_pickles_are_damaged_with_and_without() -> None:
    for allow_pickle in (False, True):
        artifact = torch_serialize.serialize(linear_program())
        artifact.state_dict = b"no pickle"
        with pytest.raises(DeserializeError, match=r"state_dict: expected what torch\.save writes"):
            pt2wire.deserialize(artifact, allow_pickle=allow_pickle)


# -- operators --------------------------------------------------------------------------------------------


def _reading(path: Path) -> Tree:
    """A program that maps a file of the machine instead of computing what it was exported to compute."""
    tree = pt2wire.to_tree(torch.export.export(torch.nn.ReLU(), (torch.ones(4),)))
    node = tree.graph_module.graph.nodes[0]
    node.target = "torch.ops.aten.from_file.default"
    keyword = types.ArgumentKind.KEYWORD
    node.inputs = [
        types.NamedArgument("filename", types.Argument.of_string(str(path)), types.ArgumentKind.POSITIONAL),
        types.NamedArgument("size", types.Argument.of_int(4), keyword),
        types.NamedArgument("dtype", types.Argument.of_scalar_type(types.ScalarType.FLOAT), keyword),
    ]
    return tree


def test_operators_that_reach_files_are_called_only_when_allowed(tmp_path: Path) -> None:
    numbers = tmp_path / "numbers"
    numbers.write_bytes(torch.arange(4.0).numpy().tobytes())
    archive, file = (
        pt2wire.read(io.BytesIO(saved(torch.export.export(torch.nn.ReLU(), (torch.ones(4),))))),
        io.BytesIO(),
    )
    archive.programs["model"] = tree = _reading(numbers)
    pt2wire.write(archive, file)
    refused = r"aten\.from_file\.default: it maps .* Pass allow_operators=\['aten\.from_file'\]"
    with pytest.raises(UnsafeArtifactError, match=refused):
        pt2wire.load(file)
    with pytest.raises(UnsafeArtifactError):
        pt2wire.load(file, allow_operators=["aten.set_"])
    loaded = pt2wire.load(file, allow_operators=["aten.from_file"])
    assert loaded.module()(torch.ones(4)).tolist() == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(UnsafeArtifactError):
        pt2wire.from_tree(tree, {}, {})
    pt2wire.from_tree(tree, {}, {}, allow_operators=["aten.from_file"])
    with pytest.raises(UnsafeArtifactError):
        pt2wire.load(file)  # what was allowed once is not allowed for good


@pytest.mark.parametrize("decomposed", [False, True], ids=["as exported", "decomposed"])
def test_programs_that_print_load_where_that_is_permitted(
    decomposed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    class Printing(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            torch._higher_order_ops.print("{x} and {name}", x=x, name=1)
            return x + 1

    ep = torch.export.export(Printing(), (torch.ones(1),))
    file = io.BytesIO(saved(ep.run_decompositions() if decomposed else ep))
    with pytest.raises(UnsafeArtifactError, match=r"Pass allow_operators=\['higher_order\.print'\]"):
        pt2wire.load(file)
    loaded = pt2wire.load(file, allow_operators=["higher_order.print"])
    capsys.readouterr()
    assert torch.equal(loaded.module()(torch.ones(1)), torch.full((1,), 2.0))
    assert capsys.readouterr().out == "tensor([1.]) and 1\n"


# -- classes ----------------------------------------------------------------------------------------------


def _local_enum() -> type[enum.Enum]:
    made = enum.Enum("Side", ["LEFT", "RIGHT"])
    made.__module__, made.__qualname__ = "tests_permissions_not_importable", "Side"
    return made


def test_enums_of_no_imported_module_are_handed_in() -> None:
    side: Any = _local_enum()

    class Sided(torch.nn.Module):
        def forward(self, x: dict[Any, torch.Tensor]) -> torch.Tensor:
            return x[side.LEFT] - x[side.RIGHT]

    ep = torch.export.export(Sided(), ({side.LEFT: torch.ones(2), side.RIGHT: torch.zeros(2)},))
    tree = pt2wire.to_tree(ep)
    with pytest.raises(
        DeserializeError, match=r"found .*Side\.LEFT\..* pass the class with types=\[\.\.\.\]"
    ):
        pt2wire.from_tree(tree, {}, {})
    loaded = pt2wire.from_tree(tree, {}, {}, types=[side])
    assert loaded.call_spec.in_spec == ep.call_spec.in_spec  # torch cannot build module() for enum keys


def test_a_class_is_found_by_both_its_names_only() -> None:
    side = _local_enum()
    assert find_class(side.__module__, "Side", (side,)) is side
    assert find_class(side.__module__, "side", (side,)) is None
    assert find_class("elsewhere", "Side", (side,)) is None
    assert find_class("torch", "nn.Linear") is torch.nn.Linear
    assert find_class("torch", "nn") is None  # a module is no class


# -- limits -----------------------------------------------------------------------------------------------


def _size(text: str) -> Callable[[Tree], None]:
    def change(tree: Tree) -> None:
        size = tree.graph_module.graph.tensor_values["sin"].sizes[0]
        size.as_expr.expr_str, size.as_expr.hint = text, None

    return change


def _guard(text: str) -> Callable[[Tree], None]:
    return lambda tree: tree.guards_code.append(text)


def _as_it_is(tree: Tree) -> None:
    pass


def _source(tree: Tree) -> None:
    inner = [{"name": "a", "target": "b", "graph_id": 1, "pass_name": "c", "action": "create"}]
    tree.graph_module.graph.nodes[0].metadata["from_node"] = json.dumps([{**inner[0], "from_node": inner}])


def _range(tree: Tree) -> None:
    tree.range_constraints["2*s0"] = types.RangeConstraint(2, 4)


S0 = "Symbol('s77', positive=True, integer=True)"

#: For each limit on a tree: a program that is sound, and the limit under which it is not.
_TREE_LIMITS: dict[str, tuple[Callable[[Tree], None], int]] = {
    "nested_graphs": (_as_it_is, 0),
    "nested_sources": (_source, 1),
    "tensor_dimensions": (_as_it_is, 1),
    "expression_length": (_as_it_is, 20),
    "expression_terms": (_size(f"Mul(Integer(2), {S0})"), 2),
    "expression_depth": (_size(f"Mul(Integer(2), {S0})"), 0),
    "program_terms": (_size(f"Mul(Integer(2), {S0})"), 3),
    "nested_divisions": (_size(f"Mod(Mod(Mod({S0}, Integer(9)), Integer(7)), Integer(5))"), 2),
    "expanded_terms": (_size(f"Mul(Add(Integer(2), {S0}), Add(Integer(3), {S0}))"), 3),
    "integer_bits": (_size(f"Mul(Integer(9), {S0})"), 3),
    "value_bits": (_size(f"Mul(Integer(9), {S0})"), 66),
    "float_precision": (_size(f"FloorToInt(Mul(Float('2.0', precision=53), ToFloat({S0})))"), 52),
    "exponent": (_size(f"Pow({S0}, Integer(3))"), 2),
    "range_name_length": (_range, 3),
    "guards": (_guard("L['x'].size()[0] >= 2"), 0),
    "guard_divisions": (_guard("L['x'].size()[0] % 2 == 0"), 0),
    "guards_length": (_guard("L['x'].size()[0] >= 2"), 20),
    "guard_length": (_guard("L['x'].size()[0] >= 2"), 20),
    "guard_depth": (_guard("L['x'].size()[0] + 1 >= 2"), 1),
    "guard_searches": (_guard("L['x'].size()[0] >= 2"), 40),
    "treespec_length": (_as_it_is, 20),
    "treespec_nodes": (_as_it_is, 2),
    "treespec_depth": (_as_it_is, 1),
}


@pytest.mark.parametrize("limit", _TREE_LIMITS)
def test_each_limit_of_a_tree_is_in_force(limit: str) -> None:
    change, most = _TREE_LIMITS[limit]
    tree = tree_of("inference")
    change(tree)
    assert pt2wire.validate(tree) == []
    findings = pt2wire.validate(tree, limits=Limits(**{limit: most}))
    assert any(raising(limit) in str(finding.error()) for finding in findings)
    weights = {
        "lin.weight": torch.nn.Parameter(torch.ones(4, 4)),
        "lin.bias": torch.nn.Parameter(torch.ones(4)),
    }
    with pytest.raises(DeserializeError, match=f"Raise `{limit}` in the limits"):
        pt2wire.from_tree(tree, weights, {}, limits=Limits(**{limit: most}))


class _Stream(io.RawIOBase):
    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._file.readinto(buffer)


#: For each limit on an archive: the limits under which an honest one is refused.
_ARCHIVE_LIMITS: dict[str, dict[str, int]] = {
    "archive_entries": {"archive_entries": 3},
    "record_name_length": {"record_name_length": 4},
    "inflated_bytes": {"inflated_bytes": 100},
    "inflation_ratio": {"inflation_ratio": 1, "inflation_floor": 0},
    "inflation_floor": {"inflation_ratio": 1, "inflation_floor": 100},
    "streamed_bytes": {"streamed_bytes": 1000},
    "document_bytes": {"document_bytes": 100},
    "document_objects": {"document_objects": 10},
}


@pytest.mark.parametrize("limit", _ARCHIVE_LIMITS)
def test_each_limit_of_an_archive_is_in_force(limit: str) -> None:
    limits = Limits(**_ARCHIVE_LIMITS[limit])
    for form in ("json", "thrift"):
        data = saved(linear_program(), formats=(form,))
        source: Any = _Stream(data) if limit == "streamed_bytes" else io.BytesIO(data)
        for check in (pt2wire.read, pt2wire.load, _first_finding):
            source = _Stream(data) if limit == "streamed_bytes" else io.BytesIO(data)
            with pytest.raises(DeserializeError, match=f"[Rr]aise .*`{limit}`.* in the limits"):
                check(source, limits=limits)


def _first_finding(source: Any, limits: Limits) -> None:
    raise pt2wire.validate(source, limits=limits)[0].error()


def test_there_is_no_limit_without_such_a_test() -> None:
    assert {field.name for field in fields(Limits)} == _TREE_LIMITS.keys() | _ARCHIVE_LIMITS.keys()


_LONG = " " * 70_000
#: What is refused by default and loads when the limit is raised.
_RAISED: dict[str, tuple[Callable[[Tree], None], int]] = {
    "expression_length": (_size(f"Mul(Integer(1),{_LONG}{S0})"), 80_000),
    "expression_depth": (_size("Identity(" * 120 + S0 + ")" * 120), 130),
    "guards": (lambda tree: tree.guards_code.extend(["L['x'].size()[0] >= 2"] * 5_000), 5_000),
    "guard_length": (_guard(f"L['x'].size()[0] {_LONG}>= 2"), 80_000),
    "guard_depth": (_guard("-" * 120 + "1 <= L['x'].size()[0]"), 130),
    "exponent": (_guard("L['x'].size()[0] ** 65 >= 2"), 65),
}


@pytest.mark.parametrize("limit", _RAISED)
def test_a_raised_limit_reaches_every_check(limit: str) -> None:
    change, most = _RAISED[limit]
    tree = copy.deepcopy(tree_of("inference"))
    change(tree)
    archive = io.BytesIO()
    weights = {
        "lin.weight": torch.nn.Parameter(torch.ones(4, 4)),
        "lin.bias": torch.nn.Parameter(torch.ones(4)),
        "count": torch.zeros(4),
    }
    ep = pt2wire.from_tree(tree_of("inference"), weights, {})
    pt2wire.save(ep, archive)
    changed = pt2wire.read(archive)
    changed.programs["model"] = tree
    file = io.BytesIO()
    with pytest.raises(pt2wire.SerializeError, match="allow_unsound=True"):
        pt2wire.write(changed, file)
    pt2wire.write(changed, file, limits=Limits(**{limit: most}))
    with pytest.raises(DeserializeError):
        pt2wire.load(file)
    assert pt2wire.validate(file, limits=Limits(**{limit: most})) == []
    pt2wire.load(file, limits=Limits(**{limit: most}))
    with pytest.raises(DeserializeError):
        pt2wire.load(file)  # what was parsed under raised limits is not accepted under the default ones


# -- wrong arguments --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"allow_pickle": 1}, "expected allow_pickle as True or False, found 1"),
        (
            {"allow_operators": "aten.from_file"},
            "expected allow_operators as a list of operators, found 'aten",
        ),
        ({"allow_operators": ["torch.ops.aten.from_file.default"]}, "expected operators as namespace.name"),
        ({"types": ["Side"]}, "expected types as a list of classes, found 'Side' in it"),
        ({"limits": 5}, "expected limits as pt2wire.Limits, found int"),
    ],
)
def test_wrong_permissions_are_a_type_error(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        permit(**arguments)
    with pytest.raises(TypeError, match=message):
        pt2wire.load(io.BytesIO(linear_archive()), **arguments)


class _Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2), nn.AvgPool2d(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        loss: torch.Tensor = self.layers(x).square().mean()
        return loss


class _Sparse(nn.Module):
    def forward(self, i: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        i.add_(0)
        return torch.sparse_coo_tensor(i, v, (3, 3)).to_dense()


def _hinted(file: io.BytesIO) -> list[str]:
    with pytest.raises(UnsafeArtifactError) as caught:
        pt2wire.load(file)
    hint = caught.value.hint or ""
    match = re.fullmatch(r"Pass allow_operators=(\[.*\]) if you trust the author of the file", hint)
    assert match is not None
    operators: list[str] = ast.literal_eval(match.group(1))
    return operators


@pytest.mark.filterwarnings("ignore")
def test_the_hint_names_all_operators_of_a_joint_graph() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 10, 10)
    ep = _export_forward_backward(torch.export.export(_Pooled(), (x,)))
    file = io.BytesIO()
    pt2wire.save(ep, file)
    operators = _hinted(file)
    assert sorted(operators) == ["aten.avg_pool2d_backward", "aten.max_pool2d_with_indices_backward"]
    loaded = pt2wire.load(file, allow_operators=operators)
    given = *ep.state_dict.values(), x
    expected = ep.graph_module(*given)
    got = loaded.graph_module(*loaded.state_dict.values(), x)
    assert len(got) == len(expected) == 3
    assert all(map(torch.equal, got, expected))
    assert loaded.graph_signature == ep.graph_signature


@pytest.mark.filterwarnings("ignore")
def test_the_hint_names_operators_that_are_found_once_others_are_allowed() -> None:
    i, v = torch.tensor([[0, 1], [1, 2]]), torch.randn(2)
    ep = torch.export.export(_Sparse(), (i, v))
    file = io.BytesIO()
    pt2wire.save(ep, file)
    loaded = pt2wire.load(file, allow_operators=_hinted(file))
    assert torch.equal(loaded.module()(i, v), _Sparse()(i, v))


class _Derived(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        derived: tuple[torch.Tensor, ...] = torch.func.jvp(lambda z: z.sin() * x, (x,), (y,))
        return derived


def test_programs_with_jvp_are_loaded_unasked_and_compute_the_same() -> None:
    x, y = torch.randn(3), torch.randn(3)
    file = io.BytesIO()
    ep = torch.export.export(_Derived(), (x, y))
    torch.export.save(ep, file)
    for _ in range(2):
        got = pt2wire.load(file).module()(x * 2, y)
        assert all(map(torch.equal, got, _Derived()(x * 2, y)))
        file = io.BytesIO()
        pt2wire.save(ep, file)
