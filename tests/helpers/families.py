"""Model families from transformers, built from small random configurations; nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import transformers
from torch import Tensor, nn, randn
from torch.export import Dim
from transformers.cache_utils import DynamicCache
from transformers.integrations.executorch import register_dynamic_cache_export_support

from .cases import Case, Inputs, Table, call

register_dynamic_cache_export_support()

FAMILIES = Table()
#: One of each kind, for tests that take long with all of them; the wide ones take the others.
USUAL_FAMILIES = (
    "bert_dynamic",
    "gpt2_static",
    "llama_with_cache_dynamic",
    "t5_static",
    "vit_dynamic",
    "whisper_encoder_static",
    "mixtral_static",
    "qwen3_moe_static",
)

SMALL = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
}
SMALL_VISION = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "image_size": 16,
    "patch_size": 4,
}
SMALL_SEQ2SEQ = {
    "vocab_size": 50,
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
}
TOKENS = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}
_BIGGER = ({"batch": 3, "length": 9},)


def random_tokens(batch: int, length: int) -> Tensor:
    return torch.randint(4, 50, (batch, length))


def add_family(
    table: Table,
    name: str,
    model: str,
    config: str,
    settings: dict[str, Any],
    inputs: Callable[..., Inputs],
    shapes: dict[str, Any] | None = None,
    *,
    sizes: tuple[dict[str, int], ...] = (),
    part: Callable[[Any], nn.Module] = lambda model: model,
    experts: str | None = None,
    both: bool = True,
    **options: Any,
) -> None:
    """Adds a model of transformers by the names of its classes: dynamic if `shapes` are given, and static.

    Without `both`, static only if there are no `shapes`.
    """

    def build() -> nn.Module:
        made = getattr(transformers, config)(**settings)
        if experts is not None:
            made._experts_implementation = experts
        return part(getattr(transformers, model)(made))

    if both or shapes is None:
        table.add(Case(f"{name}_static", build, inputs, **options))
    if shapes is not None:
        table.add(Case(f"{name}_dynamic", build, inputs, shapes=shapes, sizes=sizes, **options))


_family = partial(add_family, FAMILIES)

# Encoders.
_family(
    "bert",
    "BertForMaskedLM",
    "BertConfig",
    SMALL,
    lambda batch=2, length=7: call(
        input_ids=random_tokens(batch, length), attention_mask=torch.ones(batch, length, dtype=torch.long)
    ),
    {"input_ids": TOKENS, "attention_mask": TOKENS},
    sizes=_BIGGER,
)

# Decoders.
_family(
    "gpt2",
    "GPT2LMHeadModel",
    "GPT2Config",
    {"vocab_size": 50, "n_positions": 32, "n_embd": 16, "n_layer": 2, "n_head": 2},
    lambda batch=2, length=7: call(input_ids=random_tokens(batch, length), use_cache=False),
    {"input_ids": TOKENS, "use_cache": None},
    sizes=_BIGGER,
)


def _cached_call(heads: int) -> Callable[..., Inputs]:
    def inputs(batch: int = 2, length: int = 3, past: int = 4) -> Inputs:
        cache = DynamicCache()
        for layer in range(2):
            cache.update(randn(batch, heads, past, 8), randn(batch, heads, past, 8), layer)
        mask = torch.ones(batch, length + past, dtype=torch.long)
        return call(input_ids=random_tokens(batch, length), attention_mask=mask, cache=cache, use_cache=True)

    return inputs


_CACHE = {0: Dim.DYNAMIC, 2: Dim.DYNAMIC}
_CACHED = {
    "input_ids": TOKENS,
    "attention_mask": TOKENS,
    "use_cache": None,
    "cache": [[_CACHE, _CACHE], [_CACHE, _CACHE]],
}
_family(
    "llama_with_cache",
    "LlamaForCausalLM",
    "LlamaConfig",
    {**SMALL, "num_key_value_heads": 1},
    _cached_call(heads=1),
    _CACHED,
    sizes=({"batch": 3, "length": 5, "past": 6},),
)
_family(
    "gpt2_with_cache",
    "GPT2LMHeadModel",
    "GPT2Config",
    {"vocab_size": 50, "n_positions": 32, "n_embd": 16, "n_layer": 2, "n_head": 2},
    _cached_call(heads=2),
    _CACHED,
    sizes=({"batch": 3, "length": 5, "past": 6},),
)


# Encoder-decoders.
def _seq2seq_call(batch: int = 2, length: int = 7, target: int = 5) -> Inputs:
    return call(
        input_ids=random_tokens(batch, length),
        decoder_input_ids=random_tokens(batch, target),
        use_cache=False,
    )


_SEQ2SEQ = {"input_ids": TOKENS, "decoder_input_ids": TOKENS, "use_cache": None}
_family(
    "t5",
    "T5ForConditionalGeneration",
    "T5Config",
    {
        "vocab_size": 50,
        "d_model": 16,
        "d_kv": 8,
        "d_ff": 32,
        "num_layers": 1,
        "num_heads": 2,
        "decoder_start_token_id": 0,
    },
    _seq2seq_call,
    _SEQ2SEQ,
    sizes=({"batch": 3, "length": 9, "target": 4},),
)
_family(
    "bart",
    "BartModel",
    "BartConfig",
    {**SMALL_SEQ2SEQ, "max_position_embeddings": 32},
    _seq2seq_call,
    _SEQ2SEQ,
    sizes=({"batch": 3, "length": 9, "target": 4},),
)

# Vision.
_family(
    "vit",
    "ViTForImageClassification",
    "ViTConfig",
    SMALL_VISION,
    lambda batch=2: call(randn(batch, 3, 16, 16)),
    {"pixel_values": {0: Dim.DYNAMIC}},
    sizes=({"batch": 5},),
)

# Audio.
_family(
    "wav2vec2",
    "Wav2Vec2Model",
    "Wav2Vec2Config",
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
    "whisper_encoder",
    "WhisperModel",
    "WhisperConfig",
    {
        **SMALL_SEQ2SEQ,
        "num_mel_bins": 8,
        "max_source_positions": 10,
        "max_target_positions": 12,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "decoder_start_token_id": 3,
    },
    lambda batch=2: call(randn(batch, 8, 20)),
    {"input_features": {0: Dim.DYNAMIC}},
    sizes=({"batch": 4},),
    part=lambda model: model.get_encoder(),
)

# Mixtures of experts. The default loops over the experts that were hit, which torch cannot export.
_family(
    "mixtral",
    "MixtralForCausalLM",
    "MixtralConfig",
    {**SMALL, "num_key_value_heads": 1, "num_local_experts": 4, "num_experts_per_tok": 2},
    lambda batch=2, length=7: call(input_ids=random_tokens(batch, length), use_cache=False),
    {"input_ids": TOKENS, "use_cache": None},
    sizes=_BIGGER,
    experts="batched_mm",
)
_family(
    "qwen3_moe",
    "Qwen3MoeForCausalLM",
    "Qwen3MoeConfig",
    {
        **SMALL,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "moe_intermediate_size": 8,
        "num_experts": 4,
        "num_experts_per_tok": 2,
    },
    lambda batch=2, length=7: call(input_ids=random_tokens(batch, length), use_cache=False),
    {"input_ids": TOKENS, "use_cache": None},
    sizes=_BIGGER,
    experts="grouped_mm",
)

# The same network as another dialect of operators.
_family(
    "bert_core_aten",
    "BertModel",
    "BertConfig",
    SMALL,
    lambda batch=2, length=7: call(input_ids=random_tokens(batch, length)),
    {"input_ids": TOKENS},
    sizes=_BIGGER,
    after=lambda ep: ep.run_decompositions(),
)
