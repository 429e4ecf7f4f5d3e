"""docs/coverage.md says what a run says, and nothing that PyTorch can do is beyond us."""

from __future__ import annotations

import re

import pytest
from torch.export import ExportedProgram
from torch.fx import GraphModule

from .helpers.coverage import PAGE, SECTIONS, WIDE, measure, page, rows_on_page
from .helpers.oracles import grouped, trips_of

_TEXT = PAGE.read_text()
_COMMAND = "run `python -m tests.helpers.coverage`"
_USUAL = [name for table in SECTIONS.values() if table not in WIDE for name in table]
_WIDE = [name for table in WIDE for name in table]


def test_the_page_lists_every_program_once() -> None:
    assert list(rows_on_page()) == [name for table in SECTIONS.values() for name in table], _COMMAND
    assert page(rows_on_page()) == PAGE.read_text(), _COMMAND


def _metadata(ep: ExportedProgram) -> set[str]:
    modules = [module for module in ep.graph_module.modules() if isinstance(module, GraphModule)]
    nodes = [node for module in modules for node in module.graph.nodes]
    return {key for noted in (*modules, *nodes) for key in noted.meta}


@pytest.mark.parametrize(
    "name", grouped(["metadata_of_strict_export", "batch_norm_decomposed_dynamic", "autocast_in_a_region"])
)
def test_the_page_names_all_metadata_that_is_left_out(name: str) -> None:
    (paragraph,) = re.findall(r"^Nor does either keep what PyTorch notes(?:.+\n)+", _TEXT, re.MULTILINE)
    trips = trips_of(name)
    left_out = _metadata(trips.program) - _metadata(trips.ours_of_ours)
    assert left_out and left_out <= set(re.findall(r"`(\w+)`", paragraph))
    assert left_out.isdisjoint(_metadata(trips.pytorch_of_pytorch))


def _check(name: str) -> None:
    row = measure(name)
    assert f"\n{row}\n" in _TEXT, f"{row}: {_COMMAND}"
    assert row.saves == row.loads == row.equal == "yes"
    if row.pytorch_equal in ("yes", "outputs"):
        assert row.pytorch_reads_ours in ("yes", row.pytorch_equal)
        # `outputs` also where PyTorch pickled the example inputs.
        assert row.reads_pytorchs in ("yes", "outputs")


@pytest.mark.parametrize("name", grouped(_USUAL))
def test_a_program_fares_as_the_page_says(name: str) -> None:
    _check(name)


@pytest.mark.wide
@pytest.mark.parametrize("name", grouped(_WIDE))
def test_a_slow_program_fares_as_the_page_says(name: str) -> None:
    _check(name)
