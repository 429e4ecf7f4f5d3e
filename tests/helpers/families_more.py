"""Further families of transformers, of other kinds than those in `families.py`; slower to export."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import randn
from torch.export import Dim

from .cases import Inputs, Table, call
from .families import SMALL, SMALL_SEQ2SEQ, TOKENS, add_family, random_tokens

MORE_FAMILIES = Table()

_family = partial(add_family, MORE_FAMILIES, both=False)

_BATCH = {0: Dim.DYNAMIC}
_BIGGER_BATCH = ({"batch": 5},)
_BIGGER = ({"batch": 3, "length": 9},)
_SMALL_VISION = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "image_size": 16,
    "patch_size": 4,
}


def _text(batch: int = 2, length: int = 7) -> Inputs:
    return call(input_ids=random_tokens(batch, length))


def _text_without_cache(batch: int = 2, length: int = 7) -> Inputs:
    return call(input_ids=random_tokens(batch, length), use_cache=False)


def _image(size: int) -> Callable[..., Inputs]:
    return lambda batch=2: call(pixel_values=randn(batch, 3, size, size))


_TEXT = {"input_ids": TOKENS}
_TEXT_WITHOUT_CACHE = {"input_ids": TOKENS, "use_cache": None}
_IMAGE = {"pixel_values": _BATCH}

# Encoders of text.
for _name, _model, _config, _settings in (
    ("albert", "AlbertModel", "AlbertConfig", {**SMALL, "embedding_size": 8}),
    (
        "deberta_v2",
        "DebertaV2Model",
        "DebertaV2Config",
        {**SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    ),
    (
        "distilbert",
        "DistilBertForSequenceClassification",
        "DistilBertConfig",
        {
            "vocab_size": 50,
            "dim": 16,
            "n_layers": 2,
            "n_heads": 2,
            "hidden_dim": 32,
            "max_position_embeddings": 32,
        },
    ),
):
    _family(_name, _model, _config, _settings, _text, _TEXT, sizes=_BIGGER)

# Decoders, with positions of several kinds.
for _name, _model, _config, _settings in (
    ("gemma2", "Gemma2ForCausalLM", "Gemma2Config", {**SMALL, "num_key_value_heads": 1, "head_dim": 8}),
    ("mistral", "MistralForCausalLM", "MistralConfig", {**SMALL, "num_key_value_heads": 1}),
    ("phi3", "Phi3ForCausalLM", "Phi3Config", {**SMALL, "num_key_value_heads": 1, "pad_token_id": 0}),
    (
        "opt",
        "OPTForCausalLM",
        "OPTConfig",
        {
            "vocab_size": 50,
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "ffn_dim": 32,
            "max_position_embeddings": 32,
            "word_embed_proj_dim": 16,
        },
    ),
    (
        "bloom",
        "BloomForCausalLM",
        "BloomConfig",
        {"vocab_size": 50, "hidden_size": 16, "n_layer": 2, "n_head": 2},
    ),
):
    _family(_name, _model, _config, _settings, _text_without_cache, _TEXT_WITHOUT_CACHE, sizes=_BIGGER)

# State spaces and recurrences; torch.export fixes the length of their sequences, but for Mamba 2.
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
_family(
    "rwkv",
    "RwkvForCausalLM",
    "RwkvConfig",
    {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "context_length": 16},
    _text_without_cache,
)

# Text and images, contrasted.
_family(
    "clip",
    "CLIPModel",
    "CLIPConfig",
    {
        "text_config": {**SMALL, "projection_dim": 8},
        "vision_config": {**_SMALL_VISION, "projection_dim": 8},
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
_family(
    "siglip",
    "SiglipModel",
    "SiglipConfig",
    {"text_config": SMALL, "vision_config": _SMALL_VISION},
    lambda batch=2: call(input_ids=random_tokens(batch, 7), pixel_values=randn(batch, 3, 16, 16)),
    {"input_ids": _BATCH, "pixel_values": _BATCH},
    sizes=_BIGGER_BATCH,
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
    {**_SMALL_VISION, "image_size": [16, 16], "num_detection_tokens": 5},
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
    "hubert",
    "HubertModel",
    "HubertConfig",
    {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "conv_dim": (8, 8, 8),
        "conv_stride": (5, 2, 2),
        "conv_kernel": (10, 3, 3),
        "num_feat_extract_layers": 3,
        "num_conv_pos_embeddings": 4,
        "num_conv_pos_embedding_groups": 2,
        "mask_time_prob": 0.0,
    },
    lambda batch=2, samples=400: call(randn(batch, samples)),
    {"input_values": {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}},
    sizes=({"batch": 3, "samples": 650},),
)
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
