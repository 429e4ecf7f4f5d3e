"""Honest programs have no findings: whatever PyTorch exports and whichever of both wrote the file."""

from __future__ import annotations

import io
import warnings
from typing import Any

import pt2wire
import pytest
import torch
from torch._export.db.examples import all_examples

from .helpers.examples import NOT_EXPORTABLE
from .helpers.models import MODELS
from .helpers.oracles import grouped, trips_of

_CASES = all_examples()


@pytest.mark.parametrize("writer", ["pytorch_file", "our_file"])
@pytest.mark.parametrize("name", grouped(MODELS))
def test_model_has_no_findings(name: str, writer: str) -> None:
    """But for what has to be handed in, classes of weights, or be allowed, operators."""
    findings = pt2wire.validate(io.BytesIO(getattr(trips_of(name), writer)))
    expected = {"payload-pickled"} if MODELS[name].types or MODELS[name].pickled else set()
    expected |= {"denied-operator"} if MODELS[name].operators else set()
    assert {finding.rule for finding in findings} <= expected


@pytest.mark.parametrize("strict", [False, True], ids=["nonstrict", "strict"])
@pytest.mark.parametrize("name", sorted(_CASES))
def test_example_of_torch_export_has_no_findings(name: str, strict: bool) -> None:
    case: Any = _CASES[name]
    if name in NOT_EXPORTABLE:
        pytest.skip("PyTorch refuses to export it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ep = torch.export.export(
            case.model,
            case.example_args,
            case.example_kwargs,
            dynamic_shapes=case.dynamic_shapes,
            strict=strict,
        )
        programs = {"training": ep, "inference": ep.run_decompositions()}
    for program in programs.values():
        buffer = io.BytesIO()
        torch.export.save(program, buffer)
        assert pt2wire.validate(io.BytesIO(buffer.getvalue())) == []
