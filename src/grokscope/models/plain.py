"""The networks as plain PyTorch modules. This file needs torch and nothing else: copy it to wherever you need it.

    module = result.to_torch()                       # with grokscope
    module.config, module.state_dict()               # all that the network is

    module = PlainMLP(**config)                      # without
    module.load_state_dict(state)

Every layer is a module with a name, so that hooks see what goes in and what comes out.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn


class Square(nn.Module):
    """φ(x) = x²."""

    def forward(self, x: Tensor) -> Tensor:
        """Elementwise."""
        return x * x


def _activation(name: str) -> nn.Module:
    modules: dict[str, type[nn.Module]] = {"quadratic": Square, "relu": nn.ReLU, "gelu": nn.GELU}
    return modules[name]()


def _norm(name: str, width: int) -> nn.Module:
    modules: dict[str, type[nn.Module]] = {"none": nn.Identity, "batch": nn.BatchNorm1d, "layer": nn.LayerNorm}
    return modules[name](width)


_KEPT_AS = {"": "weight", "scale": "weight", "shift": "bias", "mean": "running_mean", "variance": "running_var"}


def loaded(module: nn.Module, weights: Mapping[str, Any], names: Mapping[str, str]) -> nn.Module:
    """The module with arrays of grokscope, in evaluation mode. `names` are beginnings of names here and there."""
    state = module.state_dict()
    with torch.no_grad():
        for name, array in weights.items():
            begins = max((old for old in names if name.startswith(old)), key=len, default=name)
            key = names.get(begins, f"{name}.") + _KEPT_AS[name.removeprefix(begins)]
            state[key].copy_(torch.tensor(array))
    return module.eval()


class PlainMLP(nn.Module):
    """W · norm(φ(dropout(U eₘ + V eₙ))), or deeper. Reads tokens [B, positions], or vectors [B, size] without tokens.

    Submodules: U, V (or U1, U2, …), then for each hidden layer dropout1, act1, norm1, and from the second on H2, H3, …
    before them, then W. The input of dropout1 is the pre-activation, the output of norm1 the hidden layer.
    """

    def __init__(
        self,
        positions: int,
        symbols: int,
        width: int,
        classes: int,
        depth: int = 2,
        activation: str = "quadratic",
        norm: str = "none",
        dropout: float = 0.0,
        tokens: bool = True,
    ) -> None:
        super().__init__()
        self.config = {
            "positions": positions,
            "symbols": symbols,
            "width": width,
            "classes": classes,
            "depth": depth,
            "activation": activation,
            "norm": norm,
            "dropout": dropout,
            "tokens": tokens,
        }
        self.tokens, self.depth = tokens, depth
        if tokens:
            pair = ("U", "V") if positions == 2 else tuple(f"U{i}" for i in range(1, positions + 1))
            self.inputs = pair
            for name in pair:
                self.add_module(name, nn.Embedding(symbols, width))
        else:
            self.inputs = ("U",)
            self.U = nn.Linear(positions, width, bias=False)
        for layer in range(1, depth):
            if layer > 1:
                self.add_module(f"H{layer}", nn.Linear(width, width, bias=False))
            self.add_module(f"dropout{layer}", nn.Dropout(dropout))
            self.add_module(f"act{layer}", _activation(activation))
            self.add_module(f"norm{layer}", _norm(norm, width))
        self.W = nn.Linear(width, classes, bias=False)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits [B, classes]."""
        layers = dict(self.named_children())
        if self.tokens:
            parts = [layers[name](inputs[:, position]) for position, name in enumerate(self.inputs)]  # [B, N] each
            x = torch.stack(parts).sum(dim=0)
        else:
            x = layers["U"](inputs)
        for layer in range(1, self.depth):
            if layer > 1:
                x = layers[f"H{layer}"](x)
            x = layers[f"norm{layer}"](layers[f"act{layer}"](layers[f"dropout{layer}"](x)))
        logits: Tensor = layers["W"](x)
        return logits


class PlainAttention(nn.Module):
    """Heads over the positions; `pattern` sees how they divide their attention [B, heads, query, key]."""

    def __init__(self, embed: int, heads: int, scale: float, dropout: float) -> None:
        super().__init__()
        self.heads, self.scale, self.dropout = heads, scale, nn.Dropout(dropout)
        self.query, self.key, self.value, self.output = (nn.Linear(embed, embed, bias=False) for _ in range(4))
        self.pattern = nn.Softmax(dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        """What the heads add to the stream [B, positions, d]."""
        parts = (self.query(x), self.key(x), self.value(x))
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)  # [B, H, positions, d/H]
        pattern = self.pattern(q @ k.transpose(-1, -2) / self.scale)  # [B, H, query, key]
        added: Tensor = self.output((self.dropout(pattern) @ v).transpose(1, 2).flatten(2))
        return added


class PlainBlock(nn.Module):
    """Attention, then an MLP, each added to the stream."""

    def __init__(
        self,
        embed: int,
        heads: int,
        activation: str,
        norm: str,
        dropout: float,
        scale: float,
        attention_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.attention_norm, self.attention = _norm(norm, embed), PlainAttention(embed, heads, scale, attention_dropout)
        self.mlp_norm, self.mlp_in = _norm(norm, embed), nn.Linear(embed, 4 * embed, bias=False)
        self.act, self.mlp_out = _activation(activation), nn.Linear(4 * embed, embed, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """The stream after this block [B, positions, d]."""
        x = x + self.dropout(self.attention(self.attention_norm(x)))
        out: Tensor = x + self.dropout(self.mlp_out(self.act(self.mlp_in(self.mlp_norm(x)))))
        return out


class PlainTransformer(nn.Module):
    """An encoder on the two tokens, of which the last position is read.

    Submodules: embedding, positions, blocks.0.attention.query, …, blocks.0.mlp_in, …, final_norm, unembedding.
    """

    def __init__(
        self,
        symbols: int,
        classes: int,
        embed: int,
        heads: int,
        layers: int,
        activation: str = "relu",
        norm: str = "none",
        dropout: float = 0.0,
        tie_weights: bool = False,
        scaling: str = "d",
        dropout_places: str = "residual",
    ) -> None:
        super().__init__()
        self.config = {
            "symbols": symbols,
            "classes": classes,
            "embed": embed,
            "heads": heads,
            "layers": layers,
            "activation": activation,
            "norm": norm,
            "dropout": dropout,
            "tie_weights": tie_weights,
            "scaling": scaling,
            "dropout_places": dropout_places,
        }
        inner = dropout if dropout_places == "everywhere" else 0.0

        def scale(size: int) -> float:
            return size if scaling == "d" else math.sqrt(size)

        self.scale = scale(embed)
        self.embedding, self.positions = nn.Embedding(symbols, embed), nn.Embedding(2, embed)
        self.blocks = nn.Sequential(
            *(PlainBlock(embed, heads, activation, norm, dropout, scale(embed // heads), inner) for _ in range(layers))
        )
        self.dropout = nn.Dropout(inner)
        self.final_norm, self.unembedding = _norm(norm, embed), nn.Linear(embed, classes, bias=False)
        if tie_weights:
            self.unembedding.weight = self.embedding.weight

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits [B, classes] of pairs [B, 2]."""
        places = torch.arange(inputs.shape[1], device=inputs.device)
        x = self.blocks(self.dropout(self.embedding(inputs) + self.positions(places)))  # [B, 2, d]
        logits: Tensor = self.unembedding(self.final_norm(x[:, -1])) / self.scale
        return logits
