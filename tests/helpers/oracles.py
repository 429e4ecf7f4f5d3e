"""What is promised of every program, each promise a function that fails when it is broken.

The oracle is PyTorch: its JSON, its `save` and `load`, its C++ reader, and the program as exported.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import importlib
import io
import json
import logging
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import pt2wire
import pytest
import torch
from pt2wire.generated import json_codec, types
from pt2wire.generated.base import Struct, Union
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, InputKind
from torch.export.passes import move_to_device_pass
from torch.utils import _pytree as pytree

from .cases import Case
from .programs import (
    Description,
    Difference,
    assert_no_differences,
    describe_program,
    describe_value,
    differences,
)


class Loss(NamedTuple):
    """A difference that a save and a load leave, which is known and explained.

    Attributes:
        path: What the path of the difference matches.
        reason: Why it is so.
    """

    path: str
    reason: str


LOSSES = (
    Loss(r" value offsets$", "PyTorch's format has a field for the offset of a value and writes 0 into it"),
    Loss(r" value container$", "PyTorch's format does not tell a list of returned tensors from a tuple"),
)
LOSSES_IN_PYTORCHS_FILES = (
    Loss(
        r"^example_inputs\[",
        "PyTorch pickles inputs of classes; not opened, they are made anew without values",
    ),
)
#: Of models that take results of a call out after a further call.
LOSSES_OF_TAKING_OUT_LATER = (
    Loss(r"^graph (nodes|text)$", "PyTorch's format has no `getitem`: its readers put it behind the call"),
)
TAKEN_OUT_LATER = frozenset({"jvp", "jvp_of_jvp_strict"})
LOSSES_OF_MOVING = (
    Loss(r" value offsets$", "PyTorch's pass copies"),
    Loss(r"^graph\..*tensor_constant\d bits$", "PyTorch's pass leaves what subgraphs hold where it was"),
    Loss(r"^weights (in one storage|that are one object)$", "PyTorch's pass copies each weight"),
)


class Trips:
    """One model on its ways through files; each way is gone once."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._outputs: dict[tuple[int, int], Description] = {}
        self._descriptions: dict[int, Description] = {}

    def outputs(self, program: ExportedProgram) -> list[Description]:
        """What two calls in a row of one of these programs give, at each of the model's sizes."""
        found = []
        for number, sizes in enumerate(({}, *self.case.sizes)):
            key = id(program), number
            if key not in self._outputs:
                run = _run_flat if self.case.flat else _run
                self._outputs[key] = run(self, program, sizes)
            found.append(self._outputs[key])
        return found

    def losses(self, loaded: ExportedProgram) -> list[Difference]:
        """Where one of these programs, loaded, differs from the one that was saved."""
        if id(loaded) not in self._descriptions:
            self._descriptions[id(loaded)] = describe_program(loaded)
        return differences(self.description, self._descriptions[id(loaded)])

    @cached_property
    def program(self) -> ExportedProgram:
        return self.case.program()

    @cached_property
    def description(self) -> Description:
        """The program before anything was done to it."""
        return describe_program(self.program)

    @cached_property
    def pytorch_file(self) -> bytes:
        assert self.description  # described first: the writer under test must not be the first to touch it
        buffer = io.BytesIO()
        torch.export.save(self.program, buffer)
        return buffer.getvalue()

    @cached_property
    def our_file(self) -> bytes:
        assert self.description
        return save(self.program)

    @cached_property
    def pytorch_json(self) -> Any:
        return _program_json(self.pytorch_file)

    @cached_property
    def our_json(self) -> bytes:
        return pt2wire.to_json(pt2wire.to_tree(self.program))

    @cached_property
    def pytorch_of_pytorch(self) -> ExportedProgram:
        return pytorch_load(self.pytorch_file)

    @cached_property
    def pytorch_of_ours(self) -> ExportedProgram:
        return pytorch_load(self.our_file)

    @cached_property
    def ours_of_pytorch(self) -> ExportedProgram:
        return self.load(self.pytorch_file)

    @cached_property
    def ours_of_ours(self) -> ExportedProgram:
        return self.load(self.our_file)

    @cached_property
    def careful_pytorchs(self) -> ExportedProgram:
        return self.load(self.pytorch_file, allow_pickle=False) if self.case.pickled else self.ours_of_pytorch

    @cached_property
    def careful_ours(self) -> ExportedProgram:
        return self.load(self.our_file, allow_pickle=False) if self.case.pickled else self.ours_of_ours

    @cached_property
    def trusting_pytorchs(self) -> ExportedProgram:
        return self.load(self.pytorch_file, allow_pickle=True)

    @cached_property
    def trusting_ours(self) -> ExportedProgram:
        return self.load(self.our_file, allow_pickle=True)

    def load(self, data: bytes, **options: Any) -> ExportedProgram:
        """The program that pt2wire reads, with the classes and the permission that the model needs."""
        permitted = {"types": self.case.types, "allow_operators": self.case.operators}
        options = {**permitted, "allow_pickle": self.case.pickled, **options}
        return pt2wire.load(io.BytesIO(data), **options)

    @property
    def loaded(self) -> dict[str, ExportedProgram]:
        """Every loaded program in which pt2wire had a part."""
        loaded = {"pt2wire reads pt2wire's": self.ours_of_ours}
        if self.case.unsaved is None:
            if self.case.broken is None:
                loaded["pt2wire reads PyTorch's"] = self.ours_of_pytorch
            if self.case.unread is None:
                loaded["PyTorch reads pt2wire's"] = self.pytorch_of_ours
        return loaded


def save(ep: ExportedProgram) -> bytes:
    """The file that pt2wire writes."""
    buffer = io.BytesIO()
    pt2wire.save(ep, buffer)
    return buffer.getvalue()


def pytorch_load(data: bytes) -> ExportedProgram:
    """The program that PyTorch reads."""
    # Its warning about pickled example inputs has a wrong format string, which logging prints as an error.
    logging.disable(logging.WARNING)
    try:
        return torch.export.load(io.BytesIO(data))
    finally:
        logging.disable(logging.NOTSET)


# The promises.


def json_equals_pytorchs(trips: Trips) -> None:
    """Our JSON is PyTorch's, keys in its order, but for our own fields."""
    ours = without_own_fields(json.loads(trips.our_json))
    found = list(json_differences("", trips.pytorch_json, ours))
    assert not found, "\n".join(found[:40])


def pytorchs_cpp_reads_our_json(trips: Trips) -> None:
    """PyTorch's C++ takes our JSON and writes the same back."""
    program = torch._C._export.deserialize_exported_program(trips.our_json.decode())
    written = json.loads(torch._C._export.serialize_exported_program(program))
    # It writes -Infinity as Infinity, keys in orders of its own, and integers beyond 64 bits as the least.
    text = trips.our_json.replace(b'"-Infinity"', b'"Infinity"')
    assert written == without_own_fields(json.loads(text, parse_int=_held_by_cpp))


def _held_by_cpp(digits: str) -> int:
    return number if -(2**63) <= (number := int(digits)) < 2**63 else -(2**63)


def saving_leaves_the_program_untouched(trips: Trips) -> None:
    """Neither `save` nor `to_tree` changes the program that it was given."""
    assert trips.our_file
    assert pt2wire.to_tree(trips.program)
    assert_no_differences(differences(trips.description, describe_program(trips.program)))


def what_we_saved_comes_back(trips: Trips) -> None:
    """Saved and loaded by pt2wire, a program is the same, but for the losses listed above."""
    assert_no_differences(unexplained(trips.losses(trips.ours_of_ours)))


def pytorch_reads_our_file_as_its_own(trips: Trips) -> None:
    """From our file PyTorch gets what was saved, or at worst what it gets from its own."""
    excused = set(trips.losses(trips.pytorch_of_pytorch))
    found = trips.losses(trips.pytorch_of_ours)
    assert_no_differences([difference for difference in found if difference not in excused])


def we_read_pytorchs_file_as_well_as_pytorch(trips: Trips) -> None:
    """From PyTorch's file we get what was saved, or at worst what PyTorch gets from it."""
    excused = set(trips.losses(trips.pytorch_of_pytorch))
    losses = LOSSES + LOSSES_IN_PYTORCHS_FILES
    if trips.case.name in TAKEN_OUT_LATER:
        losses += LOSSES_OF_TAKING_OUT_LATER
    found = unexplained(trips.losses(trips.ours_of_pytorch), losses)
    assert_no_differences([difference for difference in found if difference not in excused])


def outputs_are_equal(trips: Trips) -> None:
    """Two calls in a row give the same bits, at every size, and change inputs and state alike."""
    expected = trips.outputs(trips.program)
    for way, program in trips.loaded.items():
        for number, (one, other) in enumerate(zip(expected, trips.outputs(program), strict=True)):
            found = differences(one, other)
            assert not found, f"{way}, sizes {number}: {found[0]}"


def wrong_sizes_are_refused(trips: Trips) -> None:
    """Sizes that a range or a guard refuses before saving are refused after loading."""
    for sizes in trips.case.refused:
        for program in (trips.program, *trips.loaded.values()):
            with pytest.raises((RuntimeError, AssertionError)):
                _run(trips, program, sizes)


def saving_again_writes_the_same_bytes(trips: Trips) -> None:
    """Saving is deterministic, and a loaded program is saved as it was."""
    assert save(trips.program) == trips.our_file
    second = save(trips.ours_of_ours)
    assert save(trips.load(second)) == second
    # Guards are set back as text made from what was checked, so blanks and brackets may change, once.
    one, other = _tree_as_json(trips.our_file), _tree_as_json(second)
    for tree in (one, other):
        tree["guards_code"] = [ast.unparse(ast.parse(guard, mode="eval")) for guard in tree["guards_code"]]
    found = list(json_differences("", one, other))
    assert not found, "\n".join(found[:40])


def what_we_loaded_can_be_worked_on(trips: Trips) -> None:
    """Decomposing and unflattening give what they give on the program saved, or on the one PyTorch loads.

    Decomposed, it still refuses what it did.

    What PyTorch cannot do with the program saved, it may do with the one loaded or not.
    """
    for work in (_decompose, _refuse_decomposed, _unflatten):
        found = _attempt(work, trips, trips.ours_of_ours)
        expected = _attempt(work, trips, trips.program)
        if found != expected and not isinstance(expected, type):
            assert trips.case.unsaved is None and trips.case.unread is None, f"{found}\nis not\n{expected}"
            assert found == _attempt(work, trips, trips.pytorch_of_pytorch)


def _brackets(depth: int) -> str:
    return rf"\((?:[^()]|{_brackets(depth - 1)})*\)" if depth else r"\([^()]*\)"


_STRIDES = re.compile("stride list" + _brackets(8) + r"| of \[[^]]*\]( coalesced)?")


def devices_are_exchanged_as_pytorch_does(trips: Trips) -> None:
    """Loaded elsewhere, a program is what PyTorch's pass makes of it, which forgets strides and sharing."""
    expected = describe_program(move_to_device_pass(trips.load(trips.our_file), "meta"))
    found = describe_program(trips.load(trips.our_file, device="meta"))
    for description in (expected, found):
        for path, text in description.items():
            # PyTorch's pass hands devices to operators as text.
            text = text.replace("str 'meta'", "device(meta)")
            description[path] = _STRIDES.sub("", text)
    assert_no_differences(unexplained(differences(expected, found), LOSSES_OF_MOVING))


def pytorch_gives_up(trips: Trips) -> None:
    """What a model declares of PyTorch is still so, and whoever saves what it cannot load is told."""
    if trips.case.unsaved is not None:
        with pytest.raises(Exception, match=trips.case.unsaved):
            assert trips.pytorch_file
        if trips.case.readable:
            _run(trips, trips.pytorch_of_ours, {})
        else:
            with pytest.warns(UserWarning, match="torch.export.load will refuse this program"):
                save(trips.program)
    else:
        with pytest.raises(Exception, match=trips.case.unread):
            _run(trips, trips.pytorch_of_pytorch, {})
        if trips.case.broken is not None:
            with pytest.raises(pt2wire.DeserializeError, match=trips.case.broken):
                assert trips.ours_of_pytorch


Promise = Callable[[Trips], None]

#: Promises for programs that PyTorch cannot save or cannot load.
PROMISES_BEYOND_PYTORCH: tuple[Promise, ...] = (
    pytorch_gives_up,
    saving_leaves_the_program_untouched,
    what_we_saved_comes_back,
    outputs_are_equal,
    wrong_sizes_are_refused,
    saving_again_writes_the_same_bytes,
    what_we_loaded_can_be_worked_on,
    devices_are_exchanged_as_pytorch_does,
)

PROMISES: tuple[Promise, ...] = (
    json_equals_pytorchs,
    pytorchs_cpp_reads_our_json,
    saving_leaves_the_program_untouched,
    what_we_saved_comes_back,
    pytorch_reads_our_file_as_its_own,
    we_read_pytorchs_file_as_well_as_pytorch,
    outputs_are_equal,
    wrong_sizes_are_refused,
    saving_again_writes_the_same_bytes,
    what_we_loaded_can_be_worked_on,
    devices_are_exchanged_as_pytorch_does,
)


#: Modules with tables of models. Imported when wanted: hand-made models need not wait for transformers.
_TABLES = (
    ("models", "MODELS"),
    ("models", "BEYOND"),
    ("models_objects", "OBJECTS"),
    ("models_objects", "OBJECTS_BEYOND"),
    ("examples", "EXAMPLES"),
    ("families", "FAMILIES"),
    ("families_more", "MORE_FAMILIES"),
    ("libraries", "LIBRARIES"),
)


@lru_cache(maxsize=8)  # tests of one model run in a row
def trips_of(case_name: str) -> Trips:
    """The trips of a model, exported once a session."""
    for module, table in _TABLES:
        cases = getattr(importlib.import_module(f".{module}", __package__), table)
        if case_name in cases:
            return Trips(cases[case_name])
    raise KeyError(case_name)


def grouped(names: Iterable[str]) -> list[Any]:
    """Test parameters, so that one process runs all tests of one model and exports it once."""
    return [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in names]


def unexplained(found: list[Difference], losses: tuple[Loss, ...] = LOSSES) -> list[Difference]:
    """The differences that are no known loss."""
    return [each for each in found if not any(re.search(loss.path, each.path) for loss in losses)]


def without_own_fields(plain: Any) -> Any:
    """PyTorch's part of a program in JSON."""
    tree = json_codec.from_plain(types.ExportedProgram, plain)
    forget_own_fields(tree)
    return json.loads(json_codec.encode(tree))


def forget_own_fields(value: Any) -> None:
    """Unsets all fields of our own in a tree."""
    if isinstance(value, Struct):
        for name, number in value.FIELD_IDS.items():
            if number >= 1000:
                setattr(value, name, None)
            else:
                forget_own_fields(getattr(value, name))
    elif isinstance(value, Union):
        forget_own_fields(value.value)
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            forget_own_fields(item)


def json_differences(path: str, expected: Any, found: Any) -> Iterator[str]:
    """Where two values read from JSON differ; types and the order of keys count."""
    if type(expected) is not type(found):
        yield f"{path}: expected {expected!r}, found {found!r}"
    elif isinstance(expected, dict):
        if list(expected) != list(found):
            yield f"{path}: expected the keys {list(expected)}, found {list(found)}"
        for key in expected.keys() & found.keys():
            yield from json_differences(f"{path}.{key}", expected[key], found[key])
    elif isinstance(expected, list):
        if len(expected) != len(found):
            yield f"{path}: expected {len(expected)} items, found {len(found)}"
        for number, (one, other) in enumerate(zip(expected, found, strict=False)):
            yield from json_differences(f"{path}[{number}]", one, other)
    elif expected != found:
        yield f"{path}: expected {expected!r}, found {found!r}"


def _run(trips: Trips, program: ExportedProgram, sizes: dict[str, int]) -> Description:
    module = _module(program)
    description: Description = {}
    # The module works on the tensors of the program itself; others still need them as they were.
    before = {name: _copy(tensor.detach()) for name, tensor in _state(program).items()}
    for turn in ("first", "second"):
        args, kwargs = trips.case.make_inputs(**sizes)
        torch.manual_seed(2)
        description |= describe_value(f"{turn} output", module(*args, **kwargs))
        description |= describe_value(f"{turn} inputs afterwards", (args, kwargs))
    description |= describe_value("state afterwards", _state(program))
    with torch.no_grad():
        for name, tensor in _state(program).items():
            if describe_value("", tensor.detach()) != describe_value("", before[name]):
                tensor.copy_(before[name])
    return description


def _module(program: ExportedProgram) -> torch.nn.Module:
    signature = program.graph_signature
    if any(spec.kind is InputKind.TOKEN for spec in signature.input_specs):
        # PyTorch takes tokens out of the program itself, and leaves it invalid.
        signature = ExportGraphSignature(
            [dataclasses.replace(spec, arg=copy.copy(spec.arg)) for spec in signature.input_specs],
            [dataclasses.replace(spec, arg=copy.copy(spec.arg)) for spec in signature.output_specs],
        )
        program = program._update(copy.deepcopy(program.graph_module), signature)
    return program.module()


def _run_flat(trips: Trips, program: ExportedProgram, sizes: dict[str, int]) -> Description:
    args, kwargs = trips.case.make_inputs(**sizes)
    given, state = iter(pytree.tree_leaves((args, kwargs))), _state(program)
    specs = program.graph_signature.input_specs
    flat = [next(given) if spec.target is None else _copy(state[spec.target].detach()) for spec in specs]
    return describe_value("output", program.graph_module(*flat))


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    # `clone` lacks some dtypes, `deepcopy` some layouts.
    return (
        copy.deepcopy(tensor)
        if type(tensor) is torch.Tensor and tensor.layout is torch.strided
        else tensor.clone()
    )


def _state(program: ExportedProgram) -> dict[str, torch.Tensor]:
    tensors = {**program.state_dict, **program.constants}
    return {name: tensor for name, tensor in sorted(tensors.items()) if isinstance(tensor, torch.Tensor)}


def _program_json(archive: bytes) -> Any:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        record = next(name for name in opened.namelist() if name.endswith("/models/model.json"))
        return json.loads(opened.read(record))


def _tree_as_json(archive: bytes) -> Any:
    """A program as plain values, from whichever record holds it."""
    return json.loads(json_codec.encode(pt2wire.read(io.BytesIO(archive)).programs["model"]))


def _attempt(work: Callable[[Trips, ExportedProgram], Description], trips: Trips, ep: ExportedProgram) -> Any:
    try:
        with torch.set_grad_enabled(True):  # an unflattened module that fails within `no_grad` leaves it off
            return work(trips, ep)
    except Exception as error:  # whatever PyTorch raises on one, it must raise on the other
        return type(error)


def _decompose(trips: Trips, ep: ExportedProgram) -> Description:
    decomposed = ep.run_decompositions()
    return {"graph": str(decomposed.graph), "signature": str(decomposed.graph_signature)}


def _refuse_decomposed(trips: Trips, ep: ExportedProgram) -> Description:
    """What becomes of calls that the program refuses, once it is decomposed."""
    decomposed = ep.run_decompositions() if trips.case.refused else ep
    return {str(sizes): _attempt_call(trips, decomposed, sizes) for sizes in trips.case.refused}


def _attempt_call(trips: Trips, ep: ExportedProgram, sizes: dict[str, int]) -> str:
    try:
        _run(trips, ep, sizes)
    except (RuntimeError, AssertionError):
        return "refused"
    return "computed"


def _unflatten(trips: Trips, ep: ExportedProgram) -> Description:
    module = torch.export.unflatten(ep)
    args, kwargs = trips.case.make_inputs()
    torch.manual_seed(2)
    names = ", ".join(name for name, _ in module.named_modules())
    return {"modules": names} | describe_value("output", module(*args, **kwargs))
