"""What a researcher writes first: dense one-hot input, nn.Linear, autograd, torch.optim, two threads."""

import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grokscope import RunSpec, initial_weights, make_dataset


class Network(nn.Module):
    """The paper's network with one-hot inputs."""

    def __init__(self, spec: RunSpec) -> None:
        super().__init__()
        p, width = spec.task.modulus, spec.model.width
        self.first = nn.Linear(2 * p, width, bias=False)
        self.second = nn.Linear(width, p, bias=False)
        weights = initial_weights(spec.model, p)
        self.first.weight.data = torch.cat([torch.tensor(weights["U"]), torch.tensor(weights["V"])], dim=1)
        self.second.weight.data = torch.tensor(weights["W"])
        self.dropout = nn.Dropout(spec.model.dropout)
        norms: dict[str, Callable[[], nn.Module]] = {
            "none": nn.Identity,
            "batch": lambda: nn.BatchNorm1d(width),
            "layer": lambda: nn.LayerNorm(width),
        }
        self.norm = norms[spec.model.norm]()
        self.activation = F.relu if spec.model.activation == "relu" else torch.square

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits [B, p] of one-hot pairs [B, 2p]."""
        hidden = self.norm(self.activation(self.dropout(self.first(inputs))))
        logits: Tensor = self.second(hidden)
        return logits


class EagerProgram:
    """The loop around it."""

    def __init__(self, spec: RunSpec) -> None:
        torch.set_num_threads(2)
        dataset = make_dataset(spec.task)
        p = spec.task.modulus
        pairs = torch.tensor(dataset.train_pairs)
        self.inputs = torch.cat([F.one_hot(pairs[:, 0], p), F.one_hot(pairs[:, 1], p)], dim=1).float()
        self.labels = torch.tensor(dataset.train_labels)
        self.targets = F.one_hot(self.labels, p).float()
        self.network = Network(spec).train()
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
