"""Optimisers against torch's own, many runs at once against each alone, and a user's subclass through the engines."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from grokscope import OptimizerSpec, RunSpec, make_dataset
from grokscope.engines import TrainingState, initial_state, make_engine, make_stacked_engine
from grokscope.optimizers import Optimizer
from grokscope.section import field_info

STEPS = 30
SHAPES = [(1,), (7,), (3, 5), (64, 33), (2, 3, 17)]
TORCH_MOMENTS = {"first_moment": "exp_avg", "second_moment": "exp_avg_sq", "momentum": "momentum_buffer"}
RATES = (1e-4, 0.01, 0.3)
ADAMS: list[dict[str, Any]] = [
    {"learning_rate": rate, "weight_decay": decay, **others}
    for rate, decay, others in itertools.product(
        RATES, (0.0, 1e-5, 2.5), ({}, {"beta1": 0.0, "beta2": 0.999}, {"beta1": 0.95, "epsilon": 1e-3})
    )
]
DESCENTS: list[dict[str, Any]] = [
    {"learning_rate": rate, "weight_decay": decay, "momentum": momentum}
    for rate, decay, momentum in itertools.product(RATES, (0.0, 1e-5, 2.5), (0.0, 0.5, 0.9))
]
CASES = [
    *((kind, fields) for kind in ("adamw", "adam") for fields in ADAMS),
    *(("sgd", fields) for fields in DESCENTS),
]


def named(case: object) -> str:
    return "-".join(f"{value:g}" for value in case.values()) if isinstance(case, dict) else str(case)


def problem(shape: tuple[int, ...], seed: int = 0) -> tuple[Tensor, list[Tensor]]:
    """A weight, and a gradient for each step; some numbers have none, as tokens that are in no batch."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(shape, generator=generator)
    used = torch.rand(shape, generator=generator) < 0.9
    return weight, [0.1 * torch.randn(shape, generator=generator) * used for _ in range(STEPS)]


def trained(
    optimizer: Optimizer, weight: Tensor, gradients: list[Tensor], *, turned: bool = False
) -> tuple[Tensor, dict[str, Tensor]]:
    """After all steps. `turned` is how the engines do it: on views of arrays that are kept the other way round."""

    def kept(tensor: Tensor) -> Tensor:
        return tensor.mT.contiguous().mT if turned else tensor.clone()

    weight, moments = kept(weight), {name: kept(torch.zeros_like(weight)) for name in optimizer.moments}
    for step, gradient in enumerate(gradients, start=1):
        before = gradient.clone()
        optimizer.update(weight, kept(gradient) if turned else gradient, moments, step)
        assert torch.equal(gradient, before)  # other parts of a step may still need it
    return weight, moments


def by_torch(
    kind: str, fields: dict[str, Any], weight: Tensor, gradients: list[Tensor], **options: Any
) -> tuple[Tensor, dict[str, Tensor]]:
    """The same with torch.optim, and with its defaults where the specs have others."""
    fields = dict(fields)
    parameter = torch.nn.Parameter(weight.clone())
    common = {"lr": fields.pop("learning_rate"), "weight_decay": fields.pop("weight_decay")}
    optimizer: torch.optim.Optimizer
    if kind == "sgd":
        optimizer = torch.optim.SGD([parameter], **common, **fields)
    else:
        betas = fields.pop("beta1", 0.9), fields.pop("beta2", 0.98)
        adam = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}[kind]
        optimizer = adam([parameter], **common, betas=betas, eps=fields.pop("epsilon", 1e-8), **options)
    for gradient in gradients:
        parameter.grad = gradient.clone()
        optimizer.step()
    return parameter.detach(), dict(optimizer.state[parameter])


@pytest.mark.parametrize(("kind", "fields"), CASES, ids=named)
def test_steps_are_those_of_torch_bit_by_bit(kind: str, fields: dict[str, Any]) -> None:
    optimizer = OptimizerSpec(kind=kind, **fields)
    for seed, shape in enumerate(SHAPES):
        weight, gradients = problem(shape, seed)
        assert weight.dtype == torch.float32
        expected, state = by_torch(kind, fields, weight, gradients)
        for turned in (False, True) if len(shape) > 1 else (False,):
            found, moments = trained(optimizer, weight, gradients, turned=turned)
            assert not torch.equal(found, weight)
            assert torch.equal(found, expected), shape
            assert moments.keys() == set(optimizer.moments)
            for name, moment in moments.items():
                if kind != "sgd" or fields["momentum"]:  # else torch keeps none
                    assert torch.equal(moment, state[TORCH_MOMENTS[name]]), (name, shape)


@pytest.mark.parametrize("kind", ["adamw", "adam", "sgd"])
def test_an_interruption_changes_nothing(kind: str) -> None:
    """All that a step depends on is the weight, the moments and the number of the step."""
    optimizer = OptimizerSpec(kind=kind, weight_decay=0.1, **({"momentum": 0.9} if kind == "sgd" else {}))
    weight, gradients = problem((9, 4))
    through, _ = trained(optimizer, weight, gradients)
    moments = {name: torch.zeros_like(weight) for name in optimizer.moments}
    for step, gradient in enumerate(gradients, start=1):
        weight, moments = weight.clone(), {name: moment.clone() for name, moment in moments.items()}
        OptimizerSpec(**optimizer.model_dump()).update(weight, gradient, moments, step)
    assert torch.equal(weight, through)


def stacked(optimizers: list[Optimizer], dimensions: int) -> Optimizer:
    """One for all: with arrays of the runs' numbers in place of numbers, which broadcast along the first axis."""
    kind = type(optimizers[0])
    numbers = [name for name in kind.model_fields if field_info(kind, name).kind == "finite number"]
    assert {"learning_rate", "weight_decay"} < set(numbers)
    return optimizers[0].with_numbers(
        **{
            name: torch.tensor([getattr(one, name) for one in optimizers]).view(-1, *[1] * (dimensions - 1))
            for name in numbers
        }
    )


def assert_stacked_is_each_alone(optimizers: list[Optimizer], shape: tuple[int, ...]) -> None:
    problems = [problem(shape, seed) for seed in range(len(optimizers))]
    together, moments = trained(
        stacked(optimizers, 1 + len(shape)),
        torch.stack([weight for weight, _ in problems]),
        [torch.stack(gradients) for gradients in zip(*(own for _, own in problems), strict=True)],
    )
    for run, (optimizer, (weight, gradients)) in enumerate(zip(optimizers, problems, strict=True)):
        alone, own = trained(optimizer, weight, gradients)
        torch.testing.assert_close(together[run], alone, rtol=1e-6, atol=1e-6)
        for name, moment in own.items():
            torch.testing.assert_close(moments[name][run], moment, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 17), (64, 33)])
@pytest.mark.parametrize(
    ("kind", "runs"),
    [
        ("adamw", [{"learning_rate": 0.001}, {"weight_decay": 2.5}, {"beta1": 0.5, "beta2": 0.9}, {"epsilon": 1e-3}]),
        ("adam", [{"learning_rate": 0.001}, {"weight_decay": 1e-3}, {"beta1": 0.5, "beta2": 0.9}, {"epsilon": 1e-3}]),
        ("sgd", [{"learning_rate": 0.1}, {"weight_decay": 2.5}, {"momentum": 0.9}, {"momentum": 0.5}]),
    ],
)
def test_many_runs_at_once_are_each_run_alone(kind: str, runs: list[dict[str, Any]], shape: tuple[int, ...]) -> None:
    assert_stacked_is_each_alone([OptimizerSpec(kind=kind, **fields) for fields in runs], shape)


def test_other_numbers_leave_the_rest_and_the_original_alone() -> None:
    optimizer = OptimizerSpec(kind="adam", beta1=0.5, weight_decay=2.0)
    spared = optimizer.with_numbers(weight_decay=0.0)
    assert (spared.weight_decay, optimizer.weight_decay) == (0.0, 2.0)
    assert (type(spared), spared.kind, spared.beta1) == (type(optimizer), "adam", 0.5)


# ---- a user's own ---------------------------------------------------------------------------------------------------

OWN = '''
import torch
from grokscope import AdamW, Optimizer


class Amsgrad(AdamW):
    """AdamW that divides by the largest mean square so far, with a number and a moment more."""

    moments = (*AdamW.moments, "largest")
    elementwise = True
    strength: float = 1.0

    def descend(self, weight, gradient, moments, step):
        first, second, largest = (moments[name] for name in self.moments)
        first.lerp_(gradient, 1 - self.beta1)
        second.mul_(self.beta2).add_((1 - self.beta2) * gradient.square())
        torch.maximum(largest, second, out=largest)
        root = largest.sqrt() / (1 - self.beta2**step) ** 0.5 + self.epsilon
        weight.sub_(self.strength * self.learning_rate / (1 - self.beta1**step) * first / root)


class Plain(AdamW):
    """AdamW under another name."""



class WholeNorm(Optimizer):
    """A step of a fixed length: every number depends on all others of its run."""

    moments = ("mean",)

    def update(self, weight, gradient, moments, step):
        mean = moments["mean"].mul_(0.9).add_(0.1 * gradient)
        weight.sub_(self.learning_rate * mean / mean.norm().clamp(min=1e-12))
'''


@pytest.fixture
def own(tmp_path: Path) -> str:
    """The file with a user's optimisers."""
    path = tmp_path / "own_optimizers.py"
    path.write_text(OWN, encoding="utf-8")
    return str(path)


def advanced(spec: RunSpec, steps: int, start: TrainingState | None = None, engine: str = "torch") -> TrainingState:
    trainer = make_engine(spec, make_dataset(spec.task), start or initial_state(spec), engine)
    trainer.advance(steps)
    return trainer.state()


def assert_same(first: TrainingState, second: TrainingState, *, rounding: bool = False) -> None:
    assert first.step == second.step
    for ours, theirs in ((first.weights, second.weights), (first.moments, second.moments)):
        assert ours.keys() == theirs.keys()
        for name, array in ours.items():
            tolerance = {"rtol": 2e-3, "atol": 2e-5} if rounding else {"rtol": 0, "atol": 0}
            np.testing.assert_allclose(array, theirs[name], **tolerance, err_msg=name)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_subclass_has_the_moments_it_names(own: str, shape: tuple[int, ...]) -> None:
    """AMSGrad is in torch too, so that all three moments have known values."""
    fields = {"learning_rate": 0.01, "weight_decay": 2.0}
    optimizer = OptimizerSpec(kind=f"{own}:Amsgrad", **fields)
    assert optimizer.updates_together()
    assert optimizer.moments == ("first_moment", "second_moment", "largest")
    weight, gradients = problem(shape)
    expected, state = by_torch("adamw", fields, weight, gradients, amsgrad=True)
    found, moments = trained(optimizer, weight, gradients)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)  # its square is rounded once more than torch's
    for name, theirs in (TORCH_MOMENTS | {"largest": "max_exp_avg_sq"}).items():
        if name in moments:
            torch.testing.assert_close(moments[name], state[theirs], rtol=1e-6, atol=1e-9)
    assert not torch.equal(moments["largest"], moments["second_moment"])


@pytest.mark.parametrize("shape", [(7,), (3, 5), (64, 33)])
def test_a_subclass_takes_the_numbers_of_many_runs_at_once(own: str, shape: tuple[int, ...]) -> None:
    """Its own number too."""
    runs: list[dict[str, Any]] = [{}, {"strength": 0.5}, {"learning_rate": 0.001}, {"weight_decay": 2.5, "beta1": 0.5}]
    assert_stacked_is_each_alone([OptimizerSpec(kind=f"{own}:Amsgrad", **fields) for fields in runs], shape)


def test_a_subclass_that_changes_nothing_is_what_it_was(tiny: RunSpec, own: str) -> None:
    spec = tiny.updated({"optimizer.weight_decay": 3.0})
    assert_same(advanced(spec.updated({"optimizer.kind": f"{own}:Plain"}), 20), advanced(spec, 20))


@pytest.mark.parametrize("name", ["Amsgrad", "WholeNorm"])
@pytest.mark.parametrize(
    "model",
    [
        {"model.width": 24},
        {"model.width": 24, "model.norm": "batch"},
        {"model.kind": "transformer", "model.embed": 8},
    ],
)
def test_moments_of_a_users_own_are_kept_for_every_weight(
    tiny: RunSpec, own: str, name: str, model: dict[str, Any]
) -> None:
    fields = {"optimizer.kind": f"{own}:{name}", "optimizer.learning_rate": 0.001}
    spec = RunSpec(task=tiny.task, training=tiny.training).updated(fields | model)
    start = initial_state(spec)
    weights = {array for array in start.weights if not array.endswith(("_mean", "_variance"))}
    assert start.moments.keys() == {f"{moment}.{array}" for moment in spec.optimizer.moments for array in weights}
    for key, moment in start.moments.items():
        assert moment.shape == start.weights[key.partition(".")[2]].shape
        assert not moment.any()
    after = advanced(spec, 7)
    assert all(moment.any() for moment in after.moments.values())
    assert_same(advanced(spec, 13, after), advanced(spec, 20))


@pytest.mark.parametrize("name", ["Amsgrad", "WholeNorm"])
def test_a_stack_keeps_the_moments_of_each_run(tiny: RunSpec, own: str, name: str) -> None:
    """One after another if the optimiser is not elementwise; the same runs either way."""
    spec = tiny.updated({"optimizer.kind": f"{own}:{name}", "optimizer.learning_rate": 0.001})
    specs = [spec, spec.updated({"training.seed": 3}), spec.updated({"optimizer.learning_rate": 0.0005})]
    datasets = [make_dataset(one.task, one.training.seed) for one in specs]
    engine = make_stacked_engine(specs, datasets, [initial_state(one) for one in specs])
    engine.advance(10)
    halfway = [engine.state(run) for run in range(3)]
    engine.advance(5)
    resumed = make_stacked_engine(specs, datasets, halfway)
    resumed.advance(5)
    for run, (one, dataset) in enumerate(zip(specs, datasets, strict=True)):
        alone = make_engine(one, dataset, initial_state(one), "torch")
        alone.advance(10)
        assert_same(halfway[run], alone.state(), rounding=True)
        assert_same(resumed.state(run), engine.state(run))
