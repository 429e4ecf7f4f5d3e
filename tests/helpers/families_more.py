"""Further families of transformers, of other kinds than those in `families.py`; slower to export."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import randn
from torch.export import Dim

from .cases import Inputs, Table, call
from .families import SMALL, SMALL_SEQ2SEQ, SMALL_VISION, TOKENS, add_family, random_tokens

MORE_FAMILIES = Table()

_family = partial(add_family, MORE_FAMILIES, both=False)

_BATCH = {0: Dim.DYNAMIC}
_BIGGER_BATCH = ({"batch": 5},)
_BIGGER = ({"batch": 3, "length": 9},)


def _text(batch: int = 2, length: int = 7) -> Inputs:
    return call(input_ids=random_tokens(batch, length))


def _text_without_cache(batch: int = 2, length: int = 7) -> Inputs:
    return call(input_ids=random_tokens(batch, length), use_cache=False)


def _image(size: int) -> Callable[..., Inputs]:
    return lambda batch=2: call(pixel_values=randn(batch, 3, size, size))


_TEXT = {"input_ids": TOKENS}
_TEXT_WITHOUT_CACHE = {"input_ids": TOKENS, "use_cache": None}
_IMAGE = {"pixel_values": _BATCH}

# Text, with relative positions, and with two kinds of attention by turns.
_family(
    "deberta_v2",
    "DebertaV2Model",
    "DebertaV2Config",
    {**SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    _text,
    _TEXT,
    sizes=_BIGGER,
)
_family(
    "gemma2",
    "Gemma2ForCausalLM",
    "Gemma2Config",
    {**SMALL, "num_key_value_heads": 1, "head_dim": 8},
    _text_without_cache,
    _TEXT_WITHOUT_CACHE,
    sizes=_BIGGER,
)

# State spaces; torch.export fixes the length of Mamba's sequences.
_family(
    "mamba",
    "MambaForCausalLM",
    "MambaConfig",
    {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "state_size": 4},
    _text_without_cache,
)
_family(
    "mamba2",
    "Mamba2ForCausalLM",
    "Mamba2Config",
    {
        "vocab_size": 50,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "state_size": 4,
        "num_heads": 4,
        "head_dim": 8,
        "n_groups": 1,
        "chunk_size": 4,
    },
    _text_without_cache,
    _TEXT_WITHOUT_CACHE,
    sizes=_BIGGER,
)

# Text and images, contrasted.
_family(
    "clip",
    "CLIPModel",
    "CLIPConfig",
    {
        "text_config": {**SMALL, "projection_dim": 8},
        "vision_config": {**SMALL_VISION, "projection_dim": 8},
        "projection_dim": 8,
    },
    lambda batch=2, length=7: call(
        input_ids=random_tokens(batch, length),
        pixel_values=randn(batch, 3, 16, 16),
        attention_mask=torch.ones(batch, length, dtype=torch.long),
    ),
    {"input_ids": TOKENS, "pixel_values": _BATCH, "attention_mask": TOKENS},
    sizes=_BIGGER,
)

# Images: classes, segments, objects.
_family(
    "swin",
    "SwinModel",
    "SwinConfig",
    {
        "image_size": 16,
        "patch_size": 2,
        "embed_dim": 8,
        "depths": [1, 2],
        "num_heads": [1, 2],
        "window_size": 2,
    },
    _image(16),
    _IMAGE,
    sizes=_BIGGER_BATCH,
)
_family(
    "convnext",
    "ConvNextForImageClassification",
    "ConvNextConfig",
    {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1]},
    _image(32),
    _IMAGE,
    sizes=_BIGGER_BATCH,
)
_family(
    "segformer",
    "SegformerForSemanticSegmentation",
    "SegformerConfig",
    {
        "hidden_sizes": [8, 8, 16, 16],
        "depths": [1, 1, 1, 1],
        "num_attention_heads": [1, 1, 2, 2],
        "decoder_hidden_size": 16,
    },
    _image(32),
    _IMAGE,
    sizes=_BIGGER_BATCH,
)
_family(
    "sam_vision",
    "SamVisionModel",
    "SamVisionConfig",
    {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": 32,
        "patch_size": 8,
        "output_channels": 8,
        "global_attn_indexes": [1],
        "window_size": 2,
        "mlp_dim": 32,
    },
    _image(32),
    _IMAGE,
    sizes=_BIGGER_BATCH,
)
_family(
    "yolos",
    "YolosForObjectDetection",
    "YolosConfig",
    {**SMALL_VISION, "image_size": [16, 16], "num_detection_tokens": 5},
    _image(16),
    _IMAGE,
    sizes=_BIGGER_BATCH,
)


def _detr_settings() -> dict[str, Any]:
    import transformers

    backbone = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8, 8, 16], depths=[1, 1, 1, 1], out_features=["stage4"]
    )
    return {
        "use_timm_backbone": False,
        "use_pretrained_backbone": False,
        "backbone": None,
        "backbone_config": backbone,
        "d_model": 16,
        **{key: value for key, value in SMALL_SEQ2SEQ.items() if key not in ("vocab_size", "d_model")},
        "num_queries": 5,
    }


_family(
    "detr",
    "DetrForObjectDetection",
    "DetrConfig",
    _detr_settings(),
    _image(64),
    _IMAGE,
    sizes=_BIGGER_BATCH,
)

# Speech.
_family(
    "speech_to_text",
    "Speech2TextModel",
    "Speech2TextConfig",
    {
        **SMALL_SEQ2SEQ,
        "input_feat_per_channel": 8,
        "conv_channels": 16,
        "max_source_positions": 40,
        "max_target_positions": 20,
    },
    lambda batch=2, target=5: call(
        input_features=randn(batch, 20, 8), decoder_input_ids=random_tokens(batch, target), use_cache=False
    ),
    {"input_features": _BATCH, "decoder_input_ids": TOKENS, "use_cache": None},
    sizes=({"batch": 3, "target": 6},),
)

# Time series.
_family(
    "patchtst",
    "PatchTSTForPrediction",
    "PatchTSTConfig",
    {
        "num_input_channels": 2,
        "context_length": 16,
        "patch_length": 4,
        "patch_stride": 4,
        "d_model": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "ffn_dim": 32,
        "prediction_length": 4,
    },
    lambda batch=2: call(past_values=randn(batch, 16, 2)),
    {"past_values": _BATCH},
    sizes=_BIGGER_BATCH,
)
_SERIES = ("past_values", "past_time_features", "past_observed_mask", "future_values", "future_time_features")
_family(
    "time_series_transformer",
    "TimeSeriesTransformerModel",
    "TimeSeriesTransformerConfig",
    {
        "prediction_length": 4,
        "context_length": 8,
        "lags_sequence": [1, 2],
        "num_time_features": 1,
        **{key: value for key, value in SMALL_SEQ2SEQ.items() if key != "vocab_size"},
    },
    lambda batch=2: call(
        past_values=randn(batch, 10),
        past_time_features=randn(batch, 10, 1),
        past_observed_mask=torch.ones(batch, 10),
        future_values=randn(batch, 4),
        future_time_features=randn(batch, 4, 1),
        use_cache=False,
    ),
    {**dict.fromkeys(_SERIES, _BATCH), "use_cache": None},
    sizes=_BIGGER_BATCH,
)
