"""Every network as a textbook writes it: one-hot inputs, all positions, softmax. For tests to compare with."""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from grokscope.engines import TrainingState
from grokscope.engines.batches import BatchOrder
from grokscope.engines.torch_engine import TorchEngine
from grokscope.models import Network, Weights
from grokscope.spec import RunSpec
from grokscope.tasks import Dataset, make_dataset


def plain_logits(model: Network, weights: Mapping[str, Tensor], pairs: Tensor, masks: Sequence[Tensor]) -> Tensor:
    """Logits [B, p], BatchNorm in training mode."""
    return (_transformer if model.kind == "transformer" else _mlp)(model, weights, pairs, masks)


def _mlp(model: Network, w: Mapping[str, Tensor], pairs: Tensor, masks: Sequence[Tensor]) -> Tensor:
    p = w["W"].shape[0]
    one_hot = torch.cat([torch.eye(p, dtype=w["W"].dtype)[pairs[:, i]] for i in (0, 1)], dim=1)  # [B, 2p]
    x = one_hot @ torch.cat([w["U"], w["V"]], dim=1).T
    for layer in range(1, model.depth):
        if layer > 1:
            x = x @ w[f"H{layer}"].T
        if masks:
            x = x * masks[layer - 1]
        x = _activation(model, x)
        if model.norm != "none":
            name = "norm" if layer == 1 else f"norm{layer}"
            x = _standardised(x, 0 if model.norm == "batch" else 1) * w[f"{name}_scale"] + w[f"{name}_shift"]
    return x @ w["W"].T


def _transformer(model: Network, w: Mapping[str, Tensor], pairs: Tensor, masks: Sequence[Tensor]) -> Tensor:
    B, d, head = len(pairs), model.embed, model.embed // model.heads
    power = 1 if model.scaling == "d" else 0.5

    def normed(x: Tensor, name: str) -> Tensor:
        return x if model.norm == "none" else _standardised(x, -1) * w[f"{name}_scale"] + w[f"{name}_shift"]

    def dropped(x: Tensor, place: int) -> Tensor:  # x [B, 2, d]
        if not masks:
            return x
        mask = masks[place].view(B, -1, d)
        return x * mask if mask.shape[1] == 2 else x * torch.cat([torch.ones_like(mask), mask], dim=1)

    x = w["embedding"][pairs] + w["positions"]  # [B, 2, d]
    for layer in range(1, model.layers + 1):
        y = normed(x, f"attention_norm{layer}")
        projections = (y @ w[f"{name}{layer}"].T for name in ("query", "key", "value"))
        q, k, v = (projected.view(B, 2, model.heads, head).transpose(1, 2) for projected in projections)
        attention = torch.softmax(q @ k.transpose(-1, -2) / head**power, dim=-1)  # [B, H, 2, 2]
        mixed = (attention @ v).transpose(1, 2).reshape(B, 2, d)
        x = x + dropped(mixed @ w[f"output{layer}"].T, 2 * layer - 2)
        y = _activation(model, normed(x, f"mlp_norm{layer}") @ w[f"mlp_in{layer}"].T)
        x = x + dropped(y @ w[f"mlp_out{layer}"].T, 2 * layer - 1)
    out = w["embedding"] if model.tie_weights else w["unembedding"]
    logits: Tensor = normed(x, "final_norm")[:, 1] @ out.T / d**power
    return logits


def _activation(model: Network, x: Tensor) -> Tensor:
    match model.activation:
        case "quadratic":
            return x * x
        case "relu":
            return x.clamp(min=0)
        case "gelu":
            return x * (1 + torch.erf(x / math.sqrt(2))) / 2
    raise AssertionError(model.activation)


def _standardised(x: Tensor, dimension: int) -> Tensor:
    centred = x - x.mean(dim=dimension, keepdim=True)
    return centred / torch.sqrt(centred.square().mean(dim=dimension, keepdim=True) + 1e-5)


def plain_gradient(
    spec: RunSpec, state: TrainingState, dataset: Dataset | None = None, dtype: torch.dtype = torch.float64
) -> tuple[float, Weights]:
    """Loss and gradient of the step after `state`, by autograd of the plain network, usually in double precision."""
    dataset = dataset or make_dataset(spec.task, spec.training.seed)
    rows = torch.arange(len(dataset.train_labels))
    if spec.training.batch_size:
        order = BatchOrder(dataset.train_examples, spec.training.batch_size, spec.training.seed)
        rows = torch.tensor(order.batch(state.step + 1))
    twin = TorchEngine(spec, dataset, state)
    twin.step += 1
    masks = [mask.to(dtype) for mask in twin._dropout_masks(torch.tensor(dataset.train_examples)[rows])]
    weights = {name: torch.tensor(array, dtype=dtype).requires_grad_() for name, array in state.weights.items()}
    logits = plain_logits(spec.model, weights, torch.tensor(dataset.train_inputs)[rows], masks)
    labels = torch.tensor(dataset.train_labels)[rows]
    if spec.training.loss == "mse":
        loss = (logits - torch.eye(logits.shape[1], dtype=dtype)[labels]).square().mean()
    else:
        loss = (torch.logsumexp(logits, dim=1) - logits.gather(1, labels[:, None])[:, 0]).mean()
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.item(), {name: tensor.grad.numpy() for name, tensor in weights.items() if tensor.grad is not None}
