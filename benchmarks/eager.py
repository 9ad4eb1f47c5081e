"""What a researcher writes first: dense one-hot input, nn.Linear, autograd, torch.optim, two threads."""

import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grokscope import RunSpec, initial_weights, make_dataset

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"quadratic": torch.square, "relu": F.relu, "gelu": F.gelu}


class Network(nn.Module):
    """The paper's network with one-hot inputs, or a deeper one."""

    def __init__(self, spec: RunSpec) -> None:
        super().__init__()
        p, width = spec.task.modulus, spec.model.width
        weights = {name: torch.tensor(array) for name, array in initial_weights(spec.model, p).items()}
        matrices = [torch.cat([weights["U"], weights["V"]], dim=1)]
        matrices += [weights[f"H{layer}"] for layer in range(2, spec.model.depth)]
        self.hidden = nn.ModuleList(_linear(matrix) for matrix in matrices)
        self.last = _linear(weights["W"])
        self.dropout = nn.Dropout(spec.model.dropout)
        norms: dict[str, Callable[[], nn.Module]] = {
            "none": nn.Identity,
            "batch": lambda: nn.BatchNorm1d(width),
            "layer": lambda: nn.LayerNorm(width),
        }
        self.norms = nn.ModuleList(norms[spec.model.norm]() for _ in matrices)
        self.activation = ACTIVATIONS[spec.model.activation]

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits [B, p] of one-hot pairs [B, 2p]."""
        x = inputs
        for layer, norm in zip(self.hidden, self.norms, strict=True):
            x = norm(self.activation(self.dropout(layer(x))))
        logits: Tensor = self.last(x)
        return logits


class Transformer(nn.Module):
    """Both tokens through every layer, as an encoder is written for sequences."""

    def __init__(self, spec: RunSpec) -> None:
        super().__init__()
        weights = {name: torch.tensor(array) for name, array in initial_weights(spec.model, spec.task.modulus).items()}
        self.embedding = nn.Embedding(spec.task.modulus, spec.model.embed)
        self.embedding.weight.data = weights["embedding"]
        self.positions = nn.Parameter(weights["positions"])
        names = ("query", "key", "value", "output", "mlp_in", "mlp_out")
        self.layers = nn.ModuleList(
            nn.ModuleDict({name: _linear(weights[f"{name}{layer}"]) for name in names})
            for layer in range(1, spec.model.layers + 1)
        )
        self.unembedding = _linear(weights.get("unembedding", weights["embedding"]))
        if spec.model.tie_weights:
            self.unembedding.weight = self.embedding.weight
        norm = nn.LayerNorm if spec.model.norm == "layer" else nn.Identity
        self.norms = nn.ModuleList(norm(spec.model.embed) for _ in range(2 * spec.model.layers + 1))
        self.dropout = nn.Dropout(spec.model.dropout)
        self.activation = ACTIVATIONS[spec.model.activation]
        self.heads, self.embed = spec.model.heads, spec.model.embed
        self.power = 1 if spec.model.scaling == "d" else 0.5

    def forward(self, pairs: Tensor) -> Tensor:
        """Logits [B, p] of pairs [B, 2]."""
        x = self.embedding(pairs) + self.positions  # [B, 2, d]
        head = self.embed // self.heads
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, nn.ModuleDict)
            y = self.norms[2 * number](x)
            q, k, v = (
                layer[name](y).unflatten(-1, (self.heads, head)).transpose(1, 2) for name in ("query", "key", "value")
            )  # [B, H, 2, d/H]
            attention = torch.softmax(q @ k.transpose(-1, -2) / head**self.power, dim=-1)
            x = x + self.dropout(layer["output"]((attention @ v).transpose(1, 2).flatten(-2)))
            y = self.norms[2 * number + 1](x)
            x = x + self.dropout(layer["mlp_out"](self.activation(layer["mlp_in"](y))))
        logits: Tensor = self.unembedding(self.norms[-1](x)[:, -1]) / self.embed**self.power
        return logits


def _linear(matrix: Tensor) -> nn.Linear:
    layer = nn.Linear(matrix.shape[1], matrix.shape[0], bias=False)
    layer.weight.data = matrix
    return layer


class EagerProgram:
    """The loop around it."""

    def __init__(self, spec: RunSpec) -> None:
        torch.set_num_threads(2)
        dataset = make_dataset(spec.task)
        p = spec.task.modulus
        pairs = torch.tensor(dataset.train_inputs)
        transformer = spec.model.kind == "transformer"
        one_hot = torch.cat([F.one_hot(pairs[:, 0], p), F.one_hot(pairs[:, 1], p)], dim=1).float()
        self.inputs = pairs if transformer else one_hot
        self.labels = torch.tensor(dataset.train_labels)
        self.targets = F.one_hot(self.labels, p).float()
        self.network = (Transformer(spec) if transformer else Network(spec)).train()
        self.optimizer = torch.optim.AdamW(
            self.network.parameters(),
            lr=spec.optimizer.learning_rate,
            betas=(spec.optimizer.beta1, spec.optimizer.beta2),
            weight_decay=spec.optimizer.weight_decay,
        )
        self.loss, self.batch_size = spec.training.loss, spec.training.batch_size
        self.order = torch.randperm(len(self.labels))
        self.place = 0

    def seconds_of(self, steps: int) -> float:
        """How long so many steps take."""
        start = time.perf_counter()
        for _ in range(steps):
            inputs, targets, labels = self.inputs, self.targets, self.labels
            if self.batch_size:
                if self.place + self.batch_size > len(self.labels):
                    self.order, self.place = torch.randperm(len(self.labels)), 0
                batch = self.order[self.place : self.place + self.batch_size]
                self.place += self.batch_size
                inputs, targets, labels = inputs[batch], targets[batch], labels[batch]
            logits = self.network(inputs)
            loss = F.mse_loss(logits, targets) if self.loss == "mse" else F.cross_entropy(logits, labels)
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
        return time.perf_counter() - start
