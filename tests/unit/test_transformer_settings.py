"""Settings of the authors' Transformer that the paper does not mention."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from grokscope.engines import initial_state, make_engine, resolve_engine
from grokscope.errors import EngineError, SpecError
from grokscope.models import Transformer
from grokscope.models.plain import PlainTransformer
from grokscope.spec import RunSpec

D = 16
BASE = RunSpec().updated(
    {
        "task.modulus": 7, "model.kind": "transformer", "model.embed": D, "model.heads": 2, "model.layers": 2,
        "optimizer.learning_rate": 0.02, "optimizer.weight_decay": 3.0, "training.steps": 6,
    }
)  # fmt: skip


@pytest.mark.parametrize("engine_name", ["torch", "native"])
@pytest.mark.parametrize("norm", ["none", "layer"])
@pytest.mark.parametrize(("scaling", "s"), [("d", 1), ("sqrt-d", 0)])
def test_module_rates_are_groups_of_torchs_optimiser(scaling: str, s: int, norm: str, engine_name: str) -> None:
    """As the authors' program says it: s interpolates between standard and maximal-update parameterisation."""
    spec = BASE.updated(
        {
            "model.module_rates": True, "model.scaling": scaling, "model.norm": norm,
            "optimizer.decay_embeddings": False,
        }
    )  # fmt: skip
    data, state = spec.dataset(), initial_state(spec)
    engine = make_engine(spec, data, state, engine_name)
    engine.advance(spec.training.steps)

    module = spec.model.module(state.weights)
    more = {"query": D, "key": D, "value": D, "output": D, "mlp_in": D * math.sqrt(4), "mlp_out": 4 * D}
    groups = [
        {
            "params": [weight],
            "lr": 0.02 * D ** (s / 2 - 1 / 2) / more.get(name.rstrip("12"), 1),
            "weight_decay": 0.0 if name in ("embedding", "positions") else 3.0,
        }
        for name, weight in module.named_parameters()
    ]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98))
    labels = torch.nn.functional.one_hot(torch.tensor(data.train_labels), 7).float()
    for _ in range(spec.training.steps):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(module(torch.tensor(data.train_inputs)), labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    for name, array in module.weights().items():
        np.testing.assert_allclose(engine.weights()[name], array, rtol=2e-5, atol=2e-6, err_msg=name)


def test_without_them_all_modules_learn_at_one_rate() -> None:
    assert {Transformer().rate_factor(name) for name in ("embedding", "query1", "mlp_out2")} == {1.0}
    assert BASE.updated({"model.module_rates": True}).run_id != BASE.run_id
    assert BASE.updated({"model.module_rates": False, "model.tied_start": "embedding"}).run_id == BASE.run_id


def test_a_tied_matrix_may_start_as_an_unembedding() -> None:
    tied = RunSpec().updated({"model.kind": "transformer", "model.tie_weights": True})
    wide = initial_state(tied).weights
    narrow = initial_state(tied.updated({"model.tied_start": "unembedding"})).weights
    assert wide["embedding"].std() == pytest.approx(1, rel=0.05)
    assert narrow["embedding"].std() == pytest.approx(1 / math.sqrt(128), rel=0.05)
    assert all(np.array_equal(wide[name], narrow[name]) for name in wide if name != "embedding")
    with pytest.raises(SpecError, match=r"without model\.tie_weights"):
        tied.updated({"model.tie_weights": False, "model.tied_start": "unembedding"})


class _Given(nn.Module):
    """Multiplies with the next of some masks, as dropout would."""

    def __init__(self, masks: list[Tensor]) -> None:
        super().__init__()
        self._masks = iter(masks)

    def forward(self, x: Tensor) -> Tensor:
        return x * next(self._masks)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("norm", ["none", "layer"])
def test_dropout_everywhere_drops_what_a_plain_program_drops(layers: int, norm: str) -> None:
    spec = BASE.updated(
        {"model.layers": layers, "model.norm": norm, "model.dropout": 0.3, "model.dropout_places": "everywhere"}
    )
    data, weights = spec.dataset(), initial_state(spec).weights
    inputs = torch.tensor(data.train_inputs[:9])
    random = torch.Generator().manual_seed(5)
    module = spec.model.module(weights)
    masks = [(torch.rand(9, width, generator=random) > 0.3) / 0.7 for width in module.dropout_widths()]
    assert len(masks) == 1 + 3 * layers

    plain = spec.model.to_torch(weights, spec.task)
    assert isinstance(plain, PlainTransformer)
    plain.add_module("dropout", _Given([masks[0].view(9, 2, D)]))
    for number, block in enumerate(plain.blocks):
        pattern, *added = masks[1 + 3 * number : 4 + 3 * number]
        positions = 2 if number < layers - 1 else 1  # of the last layer only the last position is read

        def both(mask: Tensor, dim: int, positions: int = positions) -> Tensor:
            return mask if positions == 2 else torch.cat([torch.ones_like(mask), mask], dim=dim)

        attention = block.get_submodule("attention")
        attention.add_module("dropout", _Given([both(pattern.view(9, 2, positions, 2), 2)]))
        block.add_module("dropout", _Given([both(mask.view(9, positions, D), 1) for mask in added]))
    torch.testing.assert_close(module(inputs, masks), plain(inputs), rtol=1e-5, atol=1e-6)


def test_dropout_everywhere_is_trained_by_torch_with_masks_of_its_own() -> None:
    everywhere = BASE.updated({"model.dropout": 0.3, "model.dropout_places": "everywhere"})
    assert resolve_engine("auto", "cpu", everywhere) == "torch"
    with pytest.raises(EngineError, match=r"model\.dropout_places"):
        resolve_engine("native", "cpu", everywhere)
    assert "dropout everywhere" in everywhere.model.details()
    trained = {}
    for places in ("residual", "everywhere"):
        spec = everywhere.updated({"model.dropout_places": places})
        engine = make_engine(spec, spec.dataset(), initial_state(spec), "torch")
        engine.advance(6)
        trained[places] = engine.weights()["query1"]
    assert not np.allclose(trained["residual"], trained["everywhere"])
    stacked = make_engine(everywhere, everywhere.dataset(), initial_state(everywhere), "stacked")
    stacked.advance(6)
    np.testing.assert_allclose(stacked.weights()["query1"], trained["everywhere"], rtol=2e-4, atol=2e-6)


def test_without_dropout_its_places_do_not_matter_to_the_kernel() -> None:
    spec = BASE.updated({"model.dropout_places": "everywhere"})
    assert resolve_engine("auto", "cpu", spec) == "native"
    assert BASE.updated({"model.dropout_places": "residual"}).run_id == BASE.run_id != spec.run_id
