"""Models of diffusers and PyTorch Geometric, small and with random weights; nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffusers
import torch
import torch_geometric.nn
from torch import nn, randn
from torch.export import Dim

from .cases import Case, Inputs, Table, call

LIBRARIES = Table()

_BATCH = {0: Dim.DYNAMIC}


def _model(
    name: str, build: Callable[[], nn.Module], inputs: Callable[..., Inputs], shapes: Any, **sizes: int
) -> None:
    LIBRARIES.add(Case(f"{name}_dynamic", build, inputs, shapes=shapes, sizes=(sizes,)))


# Diffusion.
_model(
    "diffusers_unet",
    lambda: diffusers.UNet2DModel(
        sample_size=8,
        block_out_channels=(8, 16),
        norm_num_groups=4,
        layers_per_block=1,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=4,
    ),
    lambda batch=2: call(randn(batch, 3, 8, 8), torch.arange(1, batch + 1)),
    (_BATCH, _BATCH),
    batch=3,
)
_model(
    "diffusers_autoencoder",
    lambda: diffusers.AutoencoderKL(
        block_out_channels=(8, 8),
        norm_num_groups=4,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        sample_size=16,
    ),
    lambda batch=2: call(randn(batch, 3, 16, 16)),
    (_BATCH,),
    batch=3,
)
_model(
    "diffusers_dit",
    lambda: diffusers.DiTTransformer2DModel(
        num_attention_heads=2,
        attention_head_dim=8,
        in_channels=4,
        num_layers=2,
        sample_size=8,
        patch_size=2,
        num_embeds_ada_norm=10,
        norm_num_groups=4,
    ),
    lambda batch=2: call(randn(batch, 4, 8, 8), torch.arange(1, batch + 1), torch.arange(1, batch + 1)),
    (_BATCH, _BATCH, _BATCH),
    batch=3,
)


# Graphs: as many vertices and edges as a caller likes.
def _graph(vertices: int = 4, edges: int = 5) -> Inputs:
    return call(randn(vertices, 4), torch.randint(vertices, (2, edges)))


for _name, _build in (
    ("geometric_gcn", lambda: torch_geometric.nn.GCN(4, 8, 2, 3)),
    ("geometric_gat", lambda: torch_geometric.nn.GAT(4, 8, 2, 3, heads=2)),
    ("geometric_sage", lambda: torch_geometric.nn.GraphSAGE(4, 8, 2, 3)),
):
    _model(_name, _build, _graph, (_BATCH, {1: Dim.DYNAMIC}), vertices=6, edges=9)
