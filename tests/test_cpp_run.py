"""The interpreter in examples/cpp/run: Python's outputs bit for bit; what it cannot run is named."""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pt2wire
import pytest
import torch
from torch.export import Dim

from .helpers import cpp, cpp_run
from .helpers.cases import Case
from .helpers.cpp_run import LOOPS, Comparison, compare, edited, flat_inputs, run_all, save_linear
from .helpers.exporting import exported
from .helpers.families import FAMILIES, USUAL_FAMILIES
from .helpers.models_beyond import BEYOND
from .helpers.models_inputs import INPUTS
from .helpers.models_names import NAMES, NAMES_BEYOND
from .helpers.models_operators import OPERATORS
from .helpers.models_shapes import SHAPES
from .helpers.models_structure import STRUCTURE
from .helpers.models_weights import WEIGHTS
from .helpers.programs import assert_no_differences, differences

# The tests share what was compiled, exported and run.
pytestmark = pytest.mark.xdist_group("cpp_run")

#: What PyTorch's own format can hold.
MODELS = {**SHAPES, **INPUTS, **WEIGHTS, **STRUCTURE, **NAMES, **OPERATORS}
CASES: dict[str, Case] = {**MODELS, **LOOPS, **FAMILIES, **BEYOND, **NAMES_BEYOND}

#: What the example does not run: a part of the message, and why.
REFUSED = {
    "qwen3_moe_static": (
        "torch.ops.transformers.grouped_mm_fallback.default: this build of libtorch has no such operator",
        "transformers defines the operator in Python",
    ),
    "optional_numbers_in_lists": (
        "torch.ops.pt2wire_optionals.scalars.default: this build of libtorch has no such operator",
        "the tests define the operator in Python",
    ),
    "integers_beyond_64_bits": ("expected a 64-bit integer, found", "C++ has no such integers"),
    "members_of_enums_as_inputs": (
        "libtorch cannot load it: Unpickler found unknown type tests.helpers.models_beyond.Plain",
        "classes of Python are none of libtorch",
    ),
    "members_of_number_and_text_enums": ("outputs: arguments of kind as_enum are not supported", "the same"),
    **{
        f"flex_attention_{what}": (
            "torch._functorch.predispatch._vmap_increment_nesting: there is no such function",
            "a function of Python",
        )
        for what in ("with_a_score_function", "with_a_mask_function", "with_a_bias", "within_documents")
    },
    **{
        name: ("torch.amp.autocast_mode._enter_autocast: there is no such function", "a function of Python")
        for name in ("autocast_around_a_cond", "autocast_around_a_cond_in_a_branch")
    },
    "qwen3_moe_dynamic": ("torch.ops.transformers.grouped_mm_fallback.default", "as qwen3_moe_static"),
}

#: Held by pt2wire's own fields: tensors that branches make, lists that they return, other constants.
_BEYOND = (
    "cond_that_makes_tensors",
    "scan_that_makes_tensors_strict",
    "while_loop_over_numbers_and_tensors",
    "named_return_types_as_outputs",
    "rounded_sizes",
    "members_of_number_and_text_enums",
    "regions_without_results",
)
DEFAULT = [*MODELS, *LOOPS, *USUAL_FAMILIES, *_BEYOND]
WIDE = [name for name in (*FAMILIES, *BEYOND) if name not in DEFAULT]
#: Their guards are on tensors within a class of transformers.
CACHES = {name for name in FAMILIES if "cache" in name}


class Results:
    """Programs run in Python and in C++, all of a set at once."""

    def __init__(self, names: Sequence[str], folder: Path) -> None:
        self.comparisons = [each for name in names for each in compare(CASES[name], folder)]
        self.answers = run_all(
            [*each.command, *(["--skip-unknown-guards"] if each.case.name in CACHES else [])]
            for each in self.comparisons
        )

    def of(self, name: str) -> Iterator[tuple[Comparison, str]]:
        pairs = zip(self.comparisons, self.answers, strict=True)
        return (pair for pair in pairs if pair[0].case.name == name)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return Results(DEFAULT, tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="module")
def wide_results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return Results(WIDE, tmp_path_factory.mktemp("programs"))


def _check(results: Results, name: str) -> None:
    for comparison, answer in results.of(name):
        if name in REFUSED:
            assert REFUSED[name][0] in answer
        else:
            assert answer == "ok", comparison.name
            assert_no_differences(differences(comparison.expected, comparison.found()))


@pytest.mark.parametrize("name", DEFAULT)
def test_outputs_inputs_and_buffers_are_those_of_python(results: Results, name: str) -> None:
    _check(results, name)


@pytest.mark.wide
@pytest.mark.parametrize("name", WIDE)
def test_outputs_of_more_families_are_those_of_python(wide_results: Results, name: str) -> None:
    _check(wide_results, name)


def test_sizes_that_python_refuses(tmp_path: Path) -> None:
    calls: dict[str, list[Path]] = {}
    for case in CASES.values():
        for sizes in case.refused:
            ep = case.program()
            model, inputs, outputs = (tmp_path / f"{case.name}{suffix}" for suffix in (".pt2", ".pt", ".out"))
            pt2wire.save(ep, model, compress=False)
            args, kwargs = case.make_inputs(**sizes)
            torch.save(flat_inputs(ep, args, kwargs), inputs)
            calls[case.name] = [model, inputs, outputs]
    answers = dict(zip(calls, run_all(calls.values()), strict=True))
    assert not [name for name, answer in answers.items() if answer == "ok"]
    assert answers["guard_between_dims"].startswith("guard failed: ")
    assert answers["rounded_sizes"].startswith("guard failed: ")
    assert answers["dim_with_range"] == "the size s77 must be at most 32, found 33"
    assert answers["guard_as_runtime_assert"].startswith("nodes[")
    assert "_assert_scalar" in answers["guard_as_runtime_assert"]


# -- wrong inputs ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small program, `model.pt2`, and inputs that it takes, `inputs.pt`."""
    folder = tmp_path_factory.mktemp("model")
    rows = Dim("rows", min=3, max=9)

    def forward(self: Any, x: Any, y: Any, z: Any, n: int, mode: str, left_out: None = None) -> Any:
        return x * y[:-1, None] + z + n

    args = (torch.ones(3, 4), torch.ones(4), torch.ones(4), 2, "floor")
    shapes = ({0: rows}, {0: rows + 1}, None, None, None)
    ep = exported(forward, *args, shapes=shapes)
    pt2wire.save(ep, folder / "model.pt2", compress=False)
    torch.save(flat_inputs(ep, args, {}), folder / "inputs.pt")
    return folder


_X, _Y, _Z = torch.ones(3, 4), torch.ones(4), torch.ones(4)

WRONG_INPUTS = {
    "too few": ([_X, _Y], "expected 5 inputs, found 2"),
    "too many": ([_X, _Y, _Z, 2, "floor", 3], "expected 5 inputs, found 6"),
    "dtype": ([_X.double(), _Y, _Z, 2, "floor"], "input 0 (x): expected dtype Float, found Double"),
    "no tensor": ([1.5, _Y, _Z, 2, "floor"], "input 0 (x): expected a tensor, found Double"),
    "dimensions": ([_X, _Y, _Z[None], 2, "floor"], "input 2 (z): expected 1 dimensions, found 2"),
    "static size": (
        [_X, _Y, torch.ones(5), 2, "floor"],
        "dimension 0 of input 2 (z): expected 4, found 5",
    ),
    "derived size": (
        [_X, torch.ones(5), _Z, 2, "floor"],
        "dimension 0 of input 1 (y): expected 4, found 5",
    ),
    "below the range": (
        [torch.ones(1, 4), torch.ones(2), _Z, 2, "floor"],
        "the size s77 must be at least 3, found 1",
    ),
    "above the range": (
        [torch.ones(10, 4), torch.ones(11), _Z, 2, "floor"],
        "the size s77 must be at most 9, found 10",
    ),
    "another integer": ([_X, _Y, _Z, 3, "floor"], "input 3 (n): expected 2 as in the export, found 3"),
    "a float for an integer": (
        [_X, _Y, _Z, 2.0, "floor"],
        "input 3 (n): expected 2 as in the export, found 2.",
    ),
    "another text": (
        [_X, _Y, _Z, 2, "trunc"],
        "input 4 (mode): expected floor as in the export, found trunc",
    ),
}


def test_inputs_are_checked_before_anything_runs(folder: Path, tmp_path: Path) -> None:
    for name, (inputs, _) in WRONG_INPUTS.items():
        torch.save(inputs, tmp_path / f"{name}.pt")
    answers = run_all(
        [folder / "model.pt2", tmp_path / f"{name}.pt", tmp_path / "out.pt"] for name in WRONG_INPUTS
    )
    assert dict(zip(WRONG_INPUTS, answers, strict=True)) == {
        name: message for name, (_, message) in WRONG_INPUTS.items()
    }
    assert not (tmp_path / "out.pt").exists()


# -- files -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def linear(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_linear(tmp_path_factory.mktemp("linear"))


def test_weights_that_are_not_aligned_are_copied(linear: Path, tmp_path: Path) -> None:
    model = edited(tmp_path / "model.pt2", linear / "model.pt2", lambda module: None)
    calls = [
        [path, linear / "inputs.pt", tmp_path / f"{path.parent.name}.pt"]
        for path in (model, linear / "model.pt2")
    ]
    assert run_all(calls) == ["ok", "ok"]
    one, other = (torch.load(call[2], weights_only=True)[0][0] for call in calls)
    assert torch.equal(one, other)


def test_a_mutated_buffer_never_reaches_the_file(tmp_path: Path) -> None:
    (comparison,) = compare(MODELS["buffer_mutation"], tmp_path)
    before = comparison.command[0].read_bytes()
    assert run_all([comparison.command]) == ["ok"]
    assert comparison.command[0].read_bytes() == before


def test_outputs_that_view_one_memory_as_two_dtypes_keep_their_strides(tmp_path: Path) -> None:
    def forward(self: Any, x: Any) -> Any:
        bits = x.view(torch.int32)
        return x, bits[::2], bits[1:], x[1:]

    ep = exported(forward, torch.randn(5))
    model, inputs, outputs = (tmp_path / name for name in ("model.pt2", "inputs.pt", "outputs.pt"))
    pt2wire.save(ep, model, compress=False)
    x = torch.randn(5)
    torch.save([x], inputs)
    assert run_all([[model, inputs, outputs]]) == ["ok"]
    found = torch.load(outputs, weights_only=True)[0]
    expected = ep.module()(x)
    assert [each.stride() for each in found] == [each.stride() for each in expected]
    assert all(map(torch.equal, found, expected))
    assert found[1].untyped_storage().data_ptr() == found[2].untyped_storage().data_ptr()


class _Delay(torch.nn.Module):
    """Gives what it was given the call before last."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("before", torch.tensor([1.0]))
        self.register_buffer("last", torch.tensor([2.0]))

    def forward(self, x: Any, n: int) -> Any:
        self.before.copy_(self.last)
        self.last.copy_(x)
        return self.before, self.last, x + n


def test_a_loop_that_makes_no_trip_gives_tensors_of_its_own(tmp_path: Path) -> None:
    def forward(self: Any, i: Any, x: Any, n: int) -> Any:
        _, y = torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (i, x))
        x.add_(1)
        return y, x + n

    ep = exported(forward, torch.tensor(0), torch.ones(2), 2**40)
    model = tmp_path / "model.pt2"
    pt2wire.save(ep, model, compress=False)
    call, expected = [model], []
    for start in (5, 1):
        call += [tmp_path / f"{start}.in", tmp_path / f"{start}.out"]
        torch.save([torch.tensor(start), torch.ones(2), torch.tensor(2**40)], call[-2])
        expected.append(list(ep.module()(torch.tensor(start), torch.ones(2), 2**40)))
    assert run_all([call]) == ["ok"]
    found = [list(torch.load(path, weights_only=True)[0]) for path in call[2::2]]
    for ours, theirs in zip(found, expected, strict=True):
        assert all(map(torch.equal, ours, theirs))


def test_inputs_that_share_memory_share_it(tmp_path: Path) -> None:
    def forward(self: Any, x: Any, y: Any, factor: float) -> Any:
        x.add_(1)
        return y * factor

    memory = torch.arange(6.0)
    ep = exported(forward, torch.ones(4), torch.ones(4), math.nan)
    model, inputs, outputs = (tmp_path / name for name in ("model.pt2", "inputs.pt", "outputs.pt"))
    pt2wire.save(ep, model, compress=False)
    torch.save([memory[1:5], memory[:4], math.nan], inputs)
    assert run_all([[model, inputs, outputs]]) == ["ok"]
    changed = torch.load(outputs, weights_only=True)[1]
    ep.module()(memory[1:5], memory[:4], math.nan)
    assert torch.equal(changed[0], memory[1:5]) and torch.equal(changed[1], memory[:4])


def test_outputs_that_go_into_buffers_are_what_they_were_then(tmp_path: Path) -> None:
    shapes = {"x": None, "n": Dim.DYNAMIC}
    ep = torch.export.export(_Delay(), (torch.ones(1), 3), dynamic_shapes=shapes).run_decompositions({})
    model = tmp_path / "model.pt2"
    pt2wire.save(ep, model, compress=False)
    module, call, expected = ep.module(), [model], []
    for number in (2**31, 2**54, 2**62):  # libtorch reads only the last of these
        x = torch.tensor([float(number % 7)])
        call += [tmp_path / f"{number}.in", tmp_path / f"{number}.out"]
        torch.save([x, torch.tensor(number)], call[-2])
        expected.append([each.clone() for each in module(x, number)])
    assert run_all([call]) == ["ok"]
    found = [list(torch.load(path, weights_only=True)[0]) for path in call[2::2]]
    for ours, theirs in zip(found, expected, strict=True):
        assert all(map(torch.equal, ours, theirs))


def test_commands_that_cannot_be_carried_out(linear: Path, tmp_path: Path) -> None:
    def stderr(*arguments: str | Path) -> str:
        done = subprocess.run([cpp_run.runner(), *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == (1 if done.stderr else 0)
        assert done.stdout == ""
        return done.stderr

    model, inputs, outputs = linear / "model.pt2", linear / "inputs.pt", tmp_path / "out.pt"
    text = tmp_path / "text.pt"
    text.write_text("no pickle")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert stderr(model, inputs, outputs, "--name", "model") == ""
    assert stderr(model).startswith("usage: run MODEL.pt2 INPUTS.pt OUTPUTS.pt")
    assert stderr(model, inputs, outputs, "--name").startswith("usage: ")
    assert "it has the programs: model" in stderr(model, inputs, outputs, "--name", "other")
    assert "cannot open the file: No such file or directory" in stderr(tmp_path / "none.pt2", inputs, outputs)
    assert "expected a file, found something else" in stderr(pipe, inputs, outputs)
    assert "none.pt: cannot read the file" in stderr(model, tmp_path / "none.pt", outputs)
    assert "text.pt: libtorch cannot load it" in stderr(model, text, outputs)
    assert "no-folder/out.pt: cannot write the file" in stderr(
        model, inputs, tmp_path / "no-folder" / "out.pt"
    )


@pytest.mark.wide
def test_the_example_builds_with_cmake(linear: Path, tmp_path: Path) -> None:
    torch_folder = f"-DCMAKE_PREFIX_PATH={torch.utils.cmake_prefix_path}"
    source = cpp.ROOT / "examples" / "cpp"
    cpp.run(["cmake", "-S", source, "-B", tmp_path, "-DPT2WIRE_WITH_TORCH=ON", torch_folder])
    cpp.run(["cmake", "--build", tmp_path, "--target", "run"])
    cpp.run([tmp_path / "run", linear / "model.pt2", linear / "inputs.pt", tmp_path / "out.pt"])
    assert (tmp_path / "out.pt").exists()
