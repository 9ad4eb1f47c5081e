"""Settings of the authors' Transformer that the paper does not mention."""

import math

import numpy as np
import pytest
import torch

from grokscope.engines import initial_state, make_engine, resolve_engine
from grokscope.errors import EngineError, SpecError
from grokscope.models import Transformer
from grokscope.spec import RunSpec

D = 16
BASE = RunSpec().updated(
    {
        "task.modulus": 7, "model.kind": "transformer", "model.embed": D, "model.heads": 2, "model.layers": 2,
        "optimizer.learning_rate": 0.02, "optimizer.weight_decay": 3.0, "training.steps": 6,
    }
)  # fmt: skip


@pytest.mark.parametrize(("scaling", "s"), [("d", 1), ("sqrt-d", 0)])
def test_module_rates_are_groups_of_torchs_optimiser(scaling: str, s: int) -> None:
    """As the authors' program says it: s interpolates between standard and maximal-update parameterisation."""
    spec = BASE.updated({"model.module_rates": True, "model.scaling": scaling, "optimizer.decay_embeddings": False})
    data, state = spec.dataset(), initial_state(spec)
    engine = make_engine(spec, data, state, "torch")
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


def test_the_kernel_leaves_them_to_torch() -> None:
    spec = BASE.updated({"model.module_rates": True})
    assert resolve_engine("auto", "cpu", spec) == "torch"
    with pytest.raises(EngineError, match="one learning rate"):
        resolve_engine("native", "cpu", spec)


def test_a_tied_matrix_may_start_as_an_unembedding() -> None:
    tied = RunSpec().updated({"model.kind": "transformer", "model.tie_weights": True})
    wide = initial_state(tied).weights
    narrow = initial_state(tied.updated({"model.tied_start": "unembedding"})).weights
    assert wide["embedding"].std() == pytest.approx(1, rel=0.05)
    assert narrow["embedding"].std() == pytest.approx(1 / math.sqrt(128), rel=0.05)
    assert all(np.array_equal(wide[name], narrow[name]) for name in wide if name != "embedding")
    with pytest.raises(SpecError, match=r"without model\.tie_weights"):
        tied.updated({"model.tie_weights": False, "model.tied_start": "unembedding"})
