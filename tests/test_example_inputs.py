"""Example inputs: as they were, or stand-ins; and what PyTorch checks inputs by."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import pt2wire
import pytest
import torch
import torch._dynamo
from pt2wire import SerializeError, UnsafeArtifactError
from torch.export import ExportedProgram

from .helpers.archives import (
    INPUT,
    Marker,
    assert_computes_the_same,
    linear_program,
    pickled,
    record,
    saved,
    torch_saved,
    with_records,
)
from .helpers.exporting import exported
from .helpers.models import MODELS
from .helpers.oracles import pytorch_load


def example_inputs_of(ep: ExportedProgram, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return pt2wire.load(io.BytesIO(saved(ep, **options))).example_inputs


def test_example_inputs_come_back() -> None:
    for name in ("keyword_arguments", "nested_containers", "dataclasses", "namedtuples", "constant_inputs"):
        ep = MODELS[name].program()
        assert ep.example_inputs is not None
        expected, spec = torch.utils._pytree.tree_flatten(ep.example_inputs)
        found, found_spec = torch.utils._pytree.tree_flatten(example_inputs_of(ep))
        assert found_spec == spec
        for one, two in zip(found, expected, strict=True):
            assert torch.equal(one, two) if isinstance(one, torch.Tensor) else one == two


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_any_pickle_protocol_can_be_chosen(protocol: int) -> None:
    (args, kwargs) = example_inputs_of(linear_program(), pickle_protocol=protocol)
    assert torch.equal(args[0], INPUT)
    assert kwargs == {}
    data = saved(linear_program(), pickle_protocol=protocol)
    assert_computes_the_same(pytorch_load(data))


def without_inputs(ep: ExportedProgram) -> bytes:
    return with_records(torch_saved(ep), {"data/sample_inputs/model.pt": None})


def test_guards_stay_on_when_example_inputs_are_missing_empty_or_refused(tmp_path: Path) -> None:
    case = MODELS["guard_on_remainder"]
    ep = case.program()
    for content in (None, b"", b"no pickle", pickled(((Marker(tmp_path / "marker"),), {}))):
        data = with_records(torch_saved(ep), {"data/sample_inputs/model.pt": content})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            module = pt2wire.load(io.BytesIO(data)).module()
        assert len([each for each in caught if "stand-ins" in str(each.message)]) == (content != b"")
        args, kwargs = case.make_inputs()
        assert torch.equal(module(*args, **kwargs), ep.module()(*args, **kwargs))
        for sizes in case.refused:
            args, kwargs = case.make_inputs(**sizes)
            with pytest.raises((AssertionError, RuntimeError), match=r"Guard failed|Expected input"):
                module(*args, **kwargs)
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("written_by", [saved, torch_saved], ids=["pt2wire", "PyTorch"])
def test_a_program_without_example_inputs_comes_back_without(
    written_by: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ep = linear_program()
    monkeypatch.setattr(ep, "_example_inputs", None)  # other tests have the same program
    loaded = pt2wire.load(io.BytesIO(written_by(ep)))
    assert loaded.example_inputs is pytorch_load(written_by(ep)).example_inputs is None
    assert pt2wire.deserialize(pt2wire.serialize(ep)).example_inputs is None
    for program in (ep, loaded):
        with pytest.raises((RuntimeError, AssertionError), match=r"Expected input|Guard failed"):
            program.module()(torch.ones(5, 7))


@pytest.mark.parametrize("written_by", [saved, torch_saved], ids=["pt2wire", "PyTorch"])
def test_a_size_among_example_inputs_stays_one(written_by: Any) -> None:
    class View(torch.nn.Module):
        def forward(self, size: torch.Size, x: torch.Tensor) -> torch.Tensor:
            return x.view(size)

    ep = torch.export.export(View(), (torch.Size([2, 3]), torch.arange(6)))
    args, kwargs = pt2wire.load(io.BytesIO(written_by(ep))).example_inputs or ((), {})
    assert type(args[0]) is torch.Size and args[0] == (2, 3) and kwargs == {}
    assert torch.equal(args[1], torch.arange(6))


ODD_TEXTS = [
    "a\nb",
    "\\",
    "\0",
    "\u2028",
    "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}",
    "%s{x}\\N{DIGIT ONE}",
]


@pytest.mark.parametrize("key", ODD_TEXTS, ids=ascii)
@pytest.mark.parametrize("written_by", [saved, torch_saved], ids=["pt2wire", "PyTorch"])
def test_any_key_without_quotes_works_among_inputs(key: str, written_by: Any) -> None:
    class Keyed(torch.nn.Module):
        def forward(self, x: dict[str, torch.Tensor]) -> torch.Tensor:
            return x[key].view(-1, 3)

    rows = {key: {0: torch.export.Dim.DYNAMIC}}
    ep = torch.export.export(Keyed(), ({key: torch.ones(6)},), dynamic_shapes=(rows,))
    assert ep._guards_code
    loaded = pt2wire.load(io.BytesIO(written_by(ep)))
    for program in (ep, loaded):
        module = program.module()
        assert module({key: torch.ones(9)}).shape == (3, 3)
        with pytest.raises((AssertionError, RuntimeError)):
            module({key: torch.ones(7)})


class Compared(torch.nn.Module):
    def __init__(self, key: Any) -> None:
        super().__init__()
        self.key = key

    def forward(self, x: torch.Tensor, tree: dict[Any, torch.Tensor]) -> torch.Tensor:
        return x + 1 if tree[self.key].size(0) * 2 > x.size(0) + 1 else x - 1


@pytest.mark.parametrize(
    "key",
    [None, True, -1, 10**30, 1.5, -0.0, 1e-5, float("inf"), (1, 2), (), (None, ("a", -2.5)), 2 - 3j],
    ids=repr,
)
@pytest.mark.parametrize("written_by", [saved, torch_saved], ids=["pt2wire", "PyTorch"])
def test_guards_on_inputs_behind_any_key_stay_on(key: Any, written_by: Any) -> None:
    rows = {0: torch.export.Dim.AUTO}
    ep = torch.export.export(
        Compared(key), (torch.ones(5), {key: torch.ones(6)}), dynamic_shapes=(rows, {key: rows})
    )
    if written_by is torch_saved and isinstance(key, tuple | complex):
        return  # PyTorch loses what kind of key it is
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of integers that Thrift has no room for
        loaded = pt2wire.load(io.BytesIO(written_by(ep)))
    assert loaded._guards_code == ep._guards_code != []
    for program in (loaded, loaded.run_decompositions()):
        module = program.module()
        assert torch.equal(module(torch.ones(4), {key: torch.ones(9)}), torch.full((4,), 2.0))
        with pytest.raises(AssertionError, match="Guard failed"):
            module(torch.ones(40), {key: torch.ones(9)})


@pytest.mark.parametrize("key", [*ODD_TEXTS, "it's", '"'], ids=ascii)
def test_any_key_works_among_outputs(key: str) -> None:
    class Keyed(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {key: x + 1}

    ep = torch.export.export(Keyed(), (torch.ones(2),))
    for data in (saved(ep), torch_saved(ep)):
        found = pt2wire.load(io.BytesIO(data)).module()(torch.ones(2))
        assert list(found) == [key] and torch.equal(found[key], torch.full((2,), 2.0))


@pytest.mark.parametrize(
    "text", ["\u2028", "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}", r"\d+\s{2}"], ids=ascii
)
def test_text_inputs_may_hold_what_does_not_print(text: str) -> None:
    ep = torch.export.export(Named(), (torch.ones(2), text))
    for data in (saved(ep), torch_saved(ep)):
        module = pt2wire.load(io.BytesIO(data)).module()
        assert torch.equal(module(torch.ones(2), text), ep.module()(torch.ones(2), text))
        with pytest.raises(AssertionError, match="Guard failed"):
            module(torch.ones(2), "other")


class Named(torch.nn.Module):
    def forward(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return x + len(name)


class Builtin(torch.nn.Module):
    """Inputs that FX would call otherwise, of which one has the name that another would get."""

    def forward(
        self, x: torch.Tensor, input: str, input_1: torch.Tensor, type_1: torch.Tensor, type: int
    ) -> Any:
        def added(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x + y, x - y

        return torch.cond(type_1.sum() > 0, added, lambda x, y: (x - type, y * 2), (x, input_1))


@pytest.mark.parametrize("written_by", [saved, torch_saved], ids=["pt2wire", "PyTorch"])
def test_inputs_that_are_constants_keep_their_names(written_by: Any) -> None:
    args = (torch.ones(2), "a", torch.ones(2) * 2, torch.ones(2), 3)
    ep = torch.export.export(Builtin(), args)
    names = [node.name for node in ep.graph.nodes]
    for node in ep.graph.find_nodes(op="placeholder"):
        node.meta["custom"] = {"name": node.name}
    loaded = pt2wire.load(io.BytesIO(written_by(ep)))
    assert loaded.graph.find_nodes(op="placeholder")[4].name == "type"
    if written_by is saved:
        assert [node.name for node in loaded.graph.nodes] == names
        assert [node.meta.get("custom") for node in loaded.graph.nodes][:5] == [
            {"name": name} for name in names[:5]
        ]
    with pytest.raises(AttributeError):
        ep.module()(*args)  # where PyTorch takes `type_1` for an item of `type`
    assert torch.equal(torch.fx.Interpreter(loaded.graph_module).run(*args)[0], torch.full((2,), 3.0))


def test_notes_on_constants_that_pytorch_has_renamed_come_back() -> None:
    ep = exported(lambda self, x, input, type: x + type, torch.ones(2), "a", 3)
    renamed = pytorch_load(torch_saved(ep))
    for node in renamed.graph.find_nodes(op="placeholder"):
        node.meta["custom"] = {"name": node.name}
    assert [node.name for node in renamed.graph.find_nodes(op="placeholder")] == ["x", "input_1", "type_1"]
    found = pt2wire.load(io.BytesIO(saved(renamed))).graph.find_nodes(op="placeholder")
    assert [node.name for node in found] == ["x", "input", "type"]
    assert [node.meta["custom"]["name"] for node in found] == ["x", "input_1", "type_1"]


class Keyed(torch.nn.Module):
    def forward(self, x: torch.Tensor, tree: dict[Any, torch.Tensor]) -> Any:
        (value,) = tree.values()
        return {("it's", 'a"b\\\n'): x + value}  # among outputs, any key will do


class Weighted(torch.nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.register_buffer(name, torch.ones(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + next(self.buffers())


class Parted(torch.nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleDict({name: torch.nn.Linear(2, 2)})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        (part,) = self.parts.values()
        return part(x)  # type: ignore[no-any-return]


_PASTED = [
    (Named(), ("it's",), "graph signature, user_input `name`: expected a constant input"),
    (Named(), ('a"b',), "graph signature, user_input `name`: expected a constant input"),
    (Named(), ("two\nlines",), "graph signature, user_input `name`: expected a constant input"),
    (Named(), ("a\\back",), "graph signature, user_input `name`: expected a constant input"),
    (Keyed(), ({"it's": torch.ones(2)},), "signature of the program: expected a key of the inputs"),
    (Keyed(), ({(1, 'a"b'): torch.ones(2)},), "signature of the program: expected a key of the inputs"),
    (Weighted('a"b'), (), "graph signature, buffer `b_a_b`: expected the name of a weight"),
    (Weighted("a\nb"), (), "graph signature, buffer `b_a_b`: expected the name of a weight"),
    (Weighted("a\\b"), (), "graph signature, buffer `b_a_b`: expected the name of a weight"),
    (Parted('a"b'), (), "expected the name of a module"),
]


@pytest.mark.parametrize(("module", "args", "message"), _PASTED, ids=range(len(_PASTED)))
def test_texts_that_end_the_source_that_pytorch_pastes_them_into_are_refused_both_ways(
    module: torch.nn.Module, args: tuple[Any, ...], message: str
) -> None:
    args = (torch.ones(2), *args)
    ep = torch.export.export(module, args)
    with pytest.raises((SyntaxError, AttributeError, AssertionError)):
        ep.module()(*args)  # PyTorch has no use for the program
    with pytest.raises(pt2wire.SerializeError, match=f"{message} that PyTorch can paste into source, found"):
        saved(ep)
    with pytest.raises(UnsafeArtifactError):
        pt2wire.load(io.BytesIO(torch_saved(ep)))


def test_damaged_leaves_are_named_before_the_class_that_makes_them_needed() -> None:
    data = saved(MODELS["dataclasses"].program())
    for content in (b"no pickle", b"\x80\x02]q\x00."):
        changed = with_records(data, {"thrift/model_inputs.pt": content})
        with pytest.warns(
            UserWarning, match="stand-ins on the meta device: of their leaves, .*; they cannot be opened"
        ):
            pt2wire.load(io.BytesIO(changed))


def test_refused_example_inputs_are_named_with_their_class() -> None:
    data = torch_saved(MODELS["dataclasses"].program())
    with pytest.warns(
        UserWarning, match="without running code of tests.helpers.models_inputs.Box. Pass allow_pickle=True"
    ):
        pt2wire.load(io.BytesIO(data))


@pytest.mark.filterwarnings("ignore:model. torch.export.load will refuse this program")
def test_objects_that_decomposing_needs_are_missed_in_a_warning() -> None:
    ep = exported(lambda self, x, generator: x + 1, torch.ones(2), torch.Generator())
    file = io.BytesIO(saved(ep))
    with pytest.warns(UserWarning, match="None for objects, which run_decompositions.. may refuse"):
        careful = pt2wire.load(file)
    with pytest.raises(KeyError):
        careful.run_decompositions()
    trusting = pt2wire.load(io.BytesIO(saved(ep)), allow_pickle=True)
    assert len(trusting.run_decompositions().graph.nodes) == len(ep.graph.nodes)


def test_stand_ins_have_the_structure_and_sizes_of_the_program() -> None:
    for name in ("nested_containers_dynamic", "constant_inputs", "keyword_arguments_only", "dataclasses"):
        ep = MODELS[name].program()
        assert ep.example_inputs is not None
        found = pt2wire.load(io.BytesIO(without_inputs(ep))).example_inputs
        expected, spec = torch.utils._pytree.tree_flatten(ep.example_inputs)
        leaves, found_spec = torch.utils._pytree.tree_flatten(found)
        assert found_spec == spec
        for one, two in zip(leaves, expected, strict=True):
            if isinstance(two, torch.Tensor):
                assert (one.shape, one.stride(), one.dtype) == (two.shape, two.stride(), two.dtype)
                assert one.is_meta
            else:
                assert one == two


def test_inputs_that_cannot_be_pickled_are_saved_as_their_leaves_with_a_warning() -> None:
    from collections import namedtuple

    local = namedtuple("local", "x y")
    local.__qualname__ = "nowhere.local"

    class Adding(torch.nn.Module):
        def forward(self, point: Any) -> torch.Tensor:
            return point.x + point.y

    torch.utils._pytree._register_namedtuple(local, serialized_type_name="tests.local")
    ep = torch.export.export(Adding(), (local(torch.ones(2), torch.ones(2)),))
    with pytest.warns(UserWarning, match="the example inputs cannot be pickled"):
        data = saved(ep)
    assert record(data, "data/sample_inputs/model.pt") == b""
    found = pt2wire.load(io.BytesIO(data)).example_inputs
    assert found is not None and torch.equal(found[0][0].x, torch.ones(2))
    assert torch.export.load(io.BytesIO(data)).example_inputs in (None, {})


def test_a_program_without_example_inputs_is_saved_as_pytorch_saves_it() -> None:
    ep = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    ep.example_inputs = None
    data = saved(ep)
    assert record(data, "data/sample_inputs/model.pt") == record(
        torch_saved(ep), "data/sample_inputs/model.pt"
    )
    assert pt2wire.load(io.BytesIO(data)).module()(torch.ones(2)).tolist() == [1.0, 1.0]


def test_guards_and_ranges_come_back_as_they_were() -> None:
    def split(self: object, x: torch.Tensor, at: torch.Tensor) -> object:
        return torch.tensor_split(x, at)

    ep = exported(split, torch.ones(6, 2), torch.tensor([2, 4]))
    ep._guards_code = ["((-1) + L['x'].size()[0]) == 5", "(10*L['x'].size()[0]) == (30*L['x'].size()[1])"]
    first, second = io.BytesIO(), io.BytesIO()
    pt2wire.save(ep, first)
    again = pt2wire.load(first)
    pt2wire.save(again, second)
    assert again._guards_code == ep._guards_code
    assert again.range_constraints == ep.range_constraints
    assert len(ep.range_constraints) > 3  # of which the graph uses some
    assert second.getvalue() == first.getvalue()
    assert len(again.module()(torch.ones(6, 2), torch.tensor([2, 4]))) == 3


def test_ranges_of_floats_that_no_node_uses_come_back() -> None:
    def scaled(self: object, x: torch.Tensor) -> object:
        return x * x.sum().item()

    ep = exported(scaled, torch.ones(6), strict=True)
    file = io.BytesIO()
    pt2wire.save(ep, file)
    assert [symbol.name for symbol in ep.range_constraints] == ["zuf0", "zuf1"]
    assert pt2wire.load(file).range_constraints == ep.range_constraints


def test_what_serialize_cannot_write_is_sent_to_save() -> None:
    class Sparse(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("w", torch.eye(2).to_sparse())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sparse.mm(self.w, x)  # type: ignore[no-any-return]

    ep = torch.export.export(Sparse(), (torch.ones(2, 2),))
    with pytest.raises(
        SerializeError, match=r"found weights of layout torch\.sparse_coo\. Use pt2wire\.save"
    ):
        pt2wire.serialize(ep)


def _marked(name: str, **options: Any) -> torch.Tensor:
    tensor = torch.ones(4, 3)
    getattr(torch._dynamo.decorators, name)(tensor, 1, **options)
    return tensor


_MARKED = {
    "dynamic": lambda: _marked("mark_dynamic", min=2, max=8),
    "dynamic with a hint": lambda: _marked("mark_dynamic", hint_override=5),
    "perhaps dynamic": lambda: _marked("maybe_mark_dynamic"),
    "static": lambda: _marked("mark_static"),
    "unbacked": lambda: _marked("mark_unbacked", min=2, shape_id="rows"),
    "strictly unbacked": lambda: _marked("mark_unbacked", strict=True),
}


@pytest.mark.parametrize("name", _MARKED)
@pytest.mark.parametrize("written_by", [saved, torch_saved], ids=["pt2wire", "PyTorch"])
def test_inputs_that_are_marked_for_tracing_come_back_with_their_marks(written_by: Any, name: str) -> None:
    ep = exported(lambda self, x: x + 1, torch.ones(4, 3))
    ep.example_inputs = ((_MARKED[name](),), {})
    data = written_by(ep)
    expected = torch.load(io.BytesIO(record(data, "data/sample_inputs/model.pt")), weights_only=False)[0][0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = pt2wire.load(io.BytesIO(data))
    assert loaded.example_inputs is not None
    (found,) = loaded.example_inputs[0]
    assert torch.equal(found, expected) and vars(found) == vars(expected) != {}


@pytest.mark.parametrize(
    "marks",
    [
        {"_dynamo_static_indices": {"0"}},
        {"_dynamo_static_indices": {True}},
        {"_dynamo_static_indices": 3},
        {"_dynamo_dynamic_range": {1}},
        {"_dynamo_dynamic_range": {torch._dynamo.decorators._DimRange(0, "", 1)}},  # type: ignore[arg-type]
        {"_dynamo_hint_overrides": {0: "text"}},
        {"_dynamo_unbacked_bounds": {0: (1,)}},
        {"_dynamo_shape_ids": {"0": "rows"}},
        {"_dynamo_source": "text"},
        {"_specialize_on": 3},
        {"_specialize_on": {0: ["text"]}},
        {"_specialize_on": {0: torch.ones(2)}},
        {"_has_dynamo_dim_marking": "text"},
    ],
    ids=str,
)
def test_marks_that_pytorch_does_not_make_are_refused(marks: dict[str, Any]) -> None:
    leaf = torch.ones(4, 3)
    vars(leaf).update(marks)
    ep = exported(lambda self, x: x + 1, torch.ones(4, 3))
    changed = with_records(saved(ep), {"data/sample_inputs/model.pt": pickled(((leaf,), {}))})
    with pytest.warns(UserWarning, match="stand-ins on the meta device: they "):
        found = pt2wire.load(io.BytesIO(changed)).example_inputs
    assert found is not None and found[0][0].is_meta


@pytest.mark.parametrize(
    "leaf",
    ["text", 3 + 4j, torch.device("cpu"), torch.ones(2).to_sparse(), torch.ones(2).long()],
    ids=["text", "complex", "device", "sparse", "integers"],
)
def test_an_example_of_a_tensor_is_one(leaf: Any) -> None:
    file = io.BytesIO()
    pt2wire.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), file)
    record = "data/sample_inputs/model.pt"
    changed = with_records(file.getvalue(), {record: pickled(((leaf,), {}))})
    with pytest.warns(UserWarning, match="stand-ins on the meta device: they do not fit the program"):
        found = pt2wire.load(io.BytesIO(changed)).example_inputs
    assert found is not None and found[0][0].is_meta
