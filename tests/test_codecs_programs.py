"""Real programs, as PyTorch writes them, through both codecs and back."""

from __future__ import annotations

import json

import pytest
from pt2wire.generated import ExportedProgram, _json_reader, _thrift_reader, json_codec, thrift_codec
from torch._export.serde import schema as pytorch
from torch._export.serde.serialize import _bytes_to_dataclass, _dataclass_to_dict, serialize

from .helpers.families import FAMILIES
from .helpers.models import MODELS

# One a kind of value in the tree: what the codecs see differs little between models.
PROGRAMS = {
    **{
        name: MODELS[name]
        for name in (
            "cond_nested",
            "complex_numbers",
            "constant_inputs_nested",
            "dim_derived_by_offset",
            "dtypes_and_devices",
            "guard_between_dims",
            "lists_of_floats_and_bools",
            "memory_formats_and_layouts",
            "metadata_custom",
            "module_call_signatures",
            "namedtuples",
            "optional_tensors_in_lists",
            "random_operators",
            "scalars",
            "symbolic_floats_in_arguments",
            "symbolic_bools_and_choices",
            "texts",
            "unbacked_float_from_item",
            "weights_with_special_values",
        )
    },
    **{name: FAMILIES[name] for name in ("bert_dynamic", "gpt2_with_cache_static", "mixtral_static")},
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_survives_both_codecs(name: str) -> None:
    written = serialize(PROGRAMS[name].program()).exported_program
    text = json.dumps(json.loads(written))  # compared as text: NaN differs from itself, and the order counts

    tree = json_codec.decode(ExportedProgram, written)
    plain = json_codec.to_plain(tree)
    assert json.dumps(plain) == text
    assert json.dumps(json.loads(json_codec.encode(tree))) == text

    data = thrift_codec.encode(tree)
    for found in (
        thrift_codec._decode_fast(ExportedProgram, data),
        _thrift_reader.read(ExportedProgram, data, None),
        json_codec._read_fast(ExportedProgram, plain),
        _json_reader.read(ExportedProgram, plain, None),
    ):
        assert found is not None
        assert json.dumps(json_codec.to_plain(found)) == text
        assert thrift_codec.encode(found) == data

    theirs = _bytes_to_dataclass(pytorch.ExportedProgram, json_codec.encode(tree))
    assert json.dumps(_dataclass_to_dict(theirs)) == text
