"""Payload configs are checked against the program, and payloads against their configs."""

from __future__ import annotations

import io
from collections.abc import Callable

import pt2wire
import pytest
import torch
from pt2wire.archive.payloads import config_of
from pt2wire.generated import types
from pt2wire.validation import RULES, validate_payloads
from torch import nn

from .helpers.archives import saved


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 2))
        self.register_buffer("scale", torch.ones(2))
        self.register_buffer("shift", torch.ones(2), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x @ self.weight) * self.scale + self.shift


@pytest.fixture(scope="module")
def file() -> bytes:
    return saved(torch.export.export(Net(), (torch.ones(3, 4),)))


def read(file: bytes) -> tuple[types.ExportedProgram, types.PayloadConfig, types.PayloadConfig]:
    archive = pt2wire.read(io.BytesIO(file))
    configs = (config_of(payloads["model"]) for payloads in (archive.weights, archive.constants))
    return archive.programs["model"], *configs


def test_honest_configs_have_no_findings(file: bytes) -> None:
    assert validate_payloads(*read(file)) == []


def meta_of(weights: types.PayloadConfig, name: str = "weight") -> types.TensorMeta:
    meta = weights.config[name].tensor_meta
    assert meta is not None
    return meta


def _missing(weights: types.PayloadConfig) -> None:
    del weights.config["weight"]


def _other_dtype(weights: types.PayloadConfig) -> None:
    meta_of(weights).dtype = types.ScalarType.HALF


def _other_sizes(weights: types.PayloadConfig) -> None:
    meta_of(weights).sizes.reverse()


def _negative_stride(weights: types.PayloadConfig) -> None:
    meta_of(weights).strides[0] = types.SymInt.create(as_int=-2)


def _conjugated(weights: types.PayloadConfig) -> None:
    meta_of(weights).conj = True


def _symbolic_size(weights: types.PayloadConfig) -> None:
    size = types.SymInt.create(as_expr=types.SymExpr("Symbol('s0', integer=True)"))
    meta_of(weights).strides[0] = size


def _too_large(weights: types.PayloadConfig) -> None:
    meta_of(weights).strides[0] = types.SymInt.create(as_int=2**62)


def _parts(weights: types.PayloadConfig) -> None:
    weights.config["weight"].inner = {"values": weights.config["scale"]}


def _instance(weights: types.PayloadConfig) -> None:
    weights.config["weight"].instance = 0


def _no_meta(weights: types.PayloadConfig) -> None:
    weights.config["weight"].tensor_meta = None


def _no_parameter(weights: types.PayloadConfig) -> None:
    weights.config["weight"].is_param = False


def _pickled(weights: types.PayloadConfig) -> None:
    weights.config["weight"].use_pickle = True


def _outside(weights: types.PayloadConfig) -> None:
    weights.config["weight"].path_name = "../../etc/passwd"


def _two_dtypes(weights: types.PayloadConfig) -> None:
    weights.config["other"] = types.PayloadMeta(
        path_name=weights.config["weight"].path_name,
        is_param=False,
        use_pickle=False,
        tensor_meta=types.TensorMeta(
            dtype=types.ScalarType.INT,
            sizes=[],
            requires_grad=False,
            device=types.Device("cpu"),
            strides=[],
            storage_offset=types.SymInt.create(as_int=0),
            layout=types.Layout.Strided,
        ),
    )


def _alias_of_nothing(weights: types.PayloadConfig) -> None:
    weights.config["weight"].alias_of = "nothing"


def _chain(weights: types.PayloadConfig) -> None:
    weights.config["weight"].alias_of, weights.config["scale"].alias_of = "scale", "weight"


def _absent(weights: types.PayloadConfig) -> None:
    weights.config["weight"].absent = True


_WEIGHT = "graph_module.signature.input_specs[0].parameter"

LIES: dict[Callable[[types.PayloadConfig], None], tuple[str, str, str]] = {
    _missing: ("payload-missing", _WEIGHT, "expected a payload for 'weight', found none"),
    _other_dtype: (
        "payload-differs",
        _WEIGHT,
        "expected 'weight' of dtype FLOAT as in the graph, found HALF",
    ),
    _other_sizes: (
        "payload-differs",
        _WEIGHT,
        "expected 'weight' of sizes [4, 2] as in the graph, found [2, 4]",
    ),
    _negative_stride: (
        "payload-meta",
        "weights['weight'].tensor_meta",
        "expected strides of at least 0, found -2",
    ),
    _conjugated: (
        "payload-meta",
        "weights['weight'].tensor_meta",
        "expected a complex dtype of a conjugated tensor, found FLOAT",
    ),
    _symbolic_size: (
        "payload-meta",
        "weights['weight'].tensor_meta",
        "expected integers as strides, found a symbolic expression",
    ),
    _too_large: (
        "payload-meta",
        "weights['weight'].tensor_meta",
        f"expected a tensor within 64 bits, found sizes (4, 2), strides ({2**62}, 1) and offset 0",
    ),
    _parts: (
        "payload-meta",
        "weights['weight'].inner",
        "expected no parts of a tensor that is not sparse, found 'values'",
    ),
    _instance: (
        "payload-meta",
        "weights['weight'].instance",
        "expected a number from 1 on, or none for the first, found 0",
    ),
    _no_meta: ("payload-meta", "weights['weight']", "expected metadata of a tensor, found none"),
    _no_parameter: ("payload-kind", _WEIGHT, "expected the payload of a parameter, found no parameter"),
    _pickled: (
        "payload-pickled",
        "weights['weight']",
        "expected the bytes of a tensor, found the pickle 'weight_0'",
    ),
    _outside: (
        "payload-record",
        "weights['weight'].path_name",
        "expected a plain file name, found '../../etc/passwd'",
    ),
    _two_dtypes: (
        "payload-record",
        "weights",
        "payload 'weight_0' is FLOAT for 'weight', but INT for 'other'",
    ),
    _alias_of_nothing: (
        "payload-missing",
        "weights['weight'].alias_of",
        "said to share the storage of 'nothing', which is not there",
    ),
}


LIES[_absent] = (
    "payload-absent",
    "weights['weight']",
    "expected the bytes of a tensor, found one saved without them",
)


def test_sharing_has_no_chains(file: bytes) -> None:
    tree, weights, constants = read(file)
    _chain(weights)
    assert [
        (finding.rule, finding.path, finding.message)
        for finding in validate_payloads(tree, weights, constants)
    ] == [
        (
            "payload-missing",
            f"weights[{name!r}].alias_of",
            f"said to share the storage of {other!r}, which itself shares that of {name!r}",
        )
        for name, other in (("weight", "scale"), ("scale", "weight"))
    ]


@pytest.mark.parametrize("name", ["weight", "scale", "shift"])
def test_weights_and_constants_are_told_apart(file: bytes, name: str) -> None:
    """PyTorch looks for each among those that the signature says it is of, and nowhere else."""
    tree, weights, constants = read(file)
    here, there = (constants, weights) if name == "shift" else (weights, constants)
    there.config[name] = here.config.pop(name)
    place, other = ("constants", "weights") if name == "shift" else ("weights", "constants")
    assert [(finding.rule, finding.message) for finding in validate_payloads(tree, weights, constants)] == [
        ("payload-place", f"expected {name!r} among the {place}, found it among the {other}")
    ]


def _without_a_weight(archive: pt2wire.Archive) -> None:
    del archive.weights["model"]["weight"]


def _with_a_weight_in_another_place(archive: pt2wire.Archive) -> None:
    archive.constants["model"]["scale"] = archive.weights["model"].pop("scale")


def _with_another_size(archive: pt2wire.Archive) -> None:
    meta = archive.weights["model"]["weight"].meta.tensor_meta
    assert meta is not None
    meta.sizes.reverse()


def _with_a_chain(archive: pt2wire.Archive) -> None:
    for name, other in (("weight", "scale"), ("scale", "weight")):
        archive.weights["model"][name].meta.alias_of = other


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_without_a_weight, "expected a payload for 'weight', found none"),
        (_with_a_weight_in_another_place, "expected 'scale' among the weights, found it among the constants"),
        (_with_another_size, "expected 'weight' of sizes [4, 2] as in the graph, found [2, 4]"),
        (_with_a_chain, "said to share the storage of 'scale', which itself shares that of 'weight'"),
    ],
)
def test_what_does_not_fit_is_not_written(
    file: bytes, change: Callable[[pt2wire.Archive], None], message: str
) -> None:
    archive = pt2wire.read(io.BytesIO(file))
    change(archive)
    with pytest.raises(pt2wire.SerializeError) as caught:
        pt2wire.write(archive, io.BytesIO())
    assert caught.value.message == message
    assert str(caught.value.path).startswith("model:")


@pytest.mark.parametrize("change", LIES, ids=lambda change: change.__name__.strip("_"))
def test_lie_is_found(file: bytes, change: Callable[[types.PayloadConfig], None]) -> None:
    tree, weights, constants = read(file)
    change(weights)
    found = validate_payloads(tree, weights, constants)
    assert [(finding.rule, finding.path, finding.message) for finding in found] == [LIES[change]]


def test_another_layout_is_found_twice(file: bytes) -> None:
    tree, weights, constants = read(file)
    meta_of(weights).layout = types.Layout.SparseCoo
    found = [(finding.rule, finding.message) for finding in validate_payloads(tree, weights, constants)]
    assert found == [
        ("payload-meta", "expected indices, values, found nothing"),
        ("payload-differs", "expected 'weight' of layout Strided as in the graph, found SparseCoo"),
    ]


def test_every_rule_about_payloads_has_a_lie() -> None:
    about_payloads = {rule.id for rule in RULES.values() if rule.checked == "payloads"}
    # Whether something is among the weights or the constants is a test of its own.
    assert about_payloads == {rule for rule, _, _ in LIES.values()} | {"payload-place"}


def test_name_of_a_weight_and_a_constant(file: bytes) -> None:
    tree, weights, constants = read(file)
    constants.config["weight"] = weights.config["weight"]
    assert [finding.message for finding in validate_payloads(tree, weights, constants)] == [
        "expected a name that no weight has"
    ]


def test_pickled_payload_is_an_unsafe_artifact(file: bytes) -> None:
    tree, weights, constants = read(file)
    _pickled(weights)
    assert isinstance(validate_payloads(tree, weights, constants)[0].error(), pt2wire.UnsafeArtifactError)


def test_custom_object_that_a_node_names_needs_a_payload(file: bytes) -> None:
    tree, weights, constants = read(file)
    argument = types.Argument.create(as_custom_obj=types.CustomObjArgument("_custom_obj_0", "mine"))
    tree.graph_module.graph.nodes[0].inputs[0].arg = argument
    assert [(finding.rule, finding.path) for finding in validate_payloads(tree, weights, constants)] == [
        ("payload-missing", "graph_module.graph.nodes[0].inputs[0].arg")
    ]
