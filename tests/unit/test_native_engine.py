"""The kernel against its slow, obvious twins: autograd in double precision, and the torch engine."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from grokscope import EngineError, RunSpec, make_dataset, run
from grokscope.engines import initial_state, make_engine, resolve_engine
from grokscope.engines import native_engine as native
from grokscope.engines.batches import BatchOrder
from grokscope.engines.native_engine import NativeEngine
from grokscope.engines.state import TrainingState
from grokscope.engines.torch_engine import TorchEngine
from grokscope.models import Weights, make_network
from grokscope.models.module import losses_per_example

kernel = native.native_module()
assert kernel is not None, "the tests need the kernel: install with a C++ compiler"


def trained_a_little(spec: RunSpec, steps: int = 5) -> TrainingState:
    """A state in which nothing is zero, one, or symmetric any more."""
    engine = TorchEngine(spec, make_dataset(spec.task), initial_state(spec))
    engine.advance(steps)
    return engine.state()


def autograd(spec: RunSpec, state: TrainingState) -> tuple[float, Weights]:
    """Loss and gradient of the step after `state`, by torch in double precision."""
    dataset = make_dataset(spec.task)
    network = make_network(spec.model, state.weights).double().train()
    rows = np.arange(len(dataset.train_labels))
    if spec.training.batch_size:
        rows = BatchOrder(dataset.train_examples, spec.training.batch_size, spec.training.seed).batch(state.step + 1)
    twin = TorchEngine(spec, dataset, state)
    twin.step += 1
    masks = [mask.double() for mask in twin._dropout_masks(torch.tensor(dataset.train_examples[rows]))]
    logits = network(torch.tensor(dataset.train_inputs[rows]), masks)
    loss = losses_per_example(logits, torch.tensor(dataset.train_labels[rows]), spec.training.loss).mean()
    loss.backward()  # type: ignore[no-untyped-call]
    gradients = {name: parameter.grad for name, parameter in network.named_parameters() if parameter.grad is not None}
    return loss.item(), {name: network.oriented(name, array).numpy() for name, array in gradients.items()}


def updated_by_hand(spec: RunSpec, state: TrainingState, gradient: Weights) -> dict[str, npt.NDArray[np.float64]]:
    """One step of the optimiser as textbooks write it, in double precision."""
    o, step = spec.optimizer, state.step + 1
    result = {}
    for name, g32 in gradient.items():
        w, g = state.weights[name].astype(np.float64), g32.astype(np.float64)
        if o.kind != "adamw":
            g = g + o.weight_decay * w
        if o.kind == "sgd":
            result[name] = w - o.learning_rate * (o.momentum * state.moments[f"momentum.{name}"] + g)
            continue
        if o.kind == "adamw":
            w = w - o.learning_rate * o.weight_decay * w
        first = o.beta1 * state.moments[f"first_moment.{name}"] + (1 - o.beta1) * g
        second = o.beta2 * state.moments[f"second_moment.{name}"] + (1 - o.beta2) * g * g
        root = np.sqrt(second / (1 - o.beta2**step)) + o.epsilon
        result[name] = w - o.learning_rate * first / (1 - o.beta1**step) / root
    return result


OPTIMIZERS: dict[str, dict[str, object]] = {
    "adamw": {"optimizer.weight_decay": 5.0},
    "adam": {"optimizer.kind": "adam", "optimizer.weight_decay": 0.01},
    "sgd": {"optimizer.kind": "sgd", "optimizer.momentum": 0.9, "optimizer.weight_decay": 0.01},
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("batch_size", [None, 16])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
@pytest.mark.parametrize("loss", ["mse", "cross-entropy"])
@pytest.mark.parametrize("activation", ["quadratic", "relu"])
def test_gradient_and_step(
    level: str,
    activation: str,
    loss: str,
    norm: str,
    dropout: float,
    batch_size: int | None,
    optimizer: str,
) -> None:
    """The gradient is autograd's to 1e-5, and the step is the formula's for that gradient."""
    spec = RunSpec().updated(
        {
            "task.modulus": 17,
            "model.width": 37,
            "model.activation": activation,
            "model.norm": norm,
            "model.dropout": dropout,
            "training.loss": loss,
            "training.batch_size": batch_size,
            **OPTIMIZERS[optimizer],
        }
    )
    state = trained_a_little(spec)
    engine = NativeEngine(spec, make_dataset(spec.task), state)
    loss_value, gradient = engine.gradient()
    expected_loss, expected = autograd(spec, state)
    assert loss_value == pytest.approx(expected_loss, rel=1e-5)
    assert gradient.keys() == expected.keys()
    for name, array in gradient.items():
        error = np.linalg.norm(array - expected[name]) / np.linalg.norm(expected[name])
        assert error < 1e-5, name

    assert engine.advance(1)[0] == loss_value
    for name, weights in updated_by_hand(spec, state, gradient).items():
        np.testing.assert_allclose(engine.weights()[name], weights, rtol=1e-4, atol=1e-6, err_msg=name)


VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "weight decay": {"optimizer.weight_decay": 5.0},
    "large training set": {"task.data_fraction": 0.9},
    "relu": {"model.activation": "relu"},
    "cross-entropy": {"training.loss": "cross-entropy", "optimizer.learning_rate": 0.001},
    "dropout": {"model.dropout": 0.3},
    "mini-batch": {"training.batch_size": 8},
    "batch norm": {"model.norm": "batch", "training.batch_size": 16},
    "layer norm": {"model.norm": "layer"},
    "division": {"task.operation": "divide", "task.data_fraction": 0.9},
    "everything": {
        "model.dropout": 0.2,
        "model.norm": "batch",
        "training.batch_size": 10,
        "training.loss": "cross-entropy",
        "training.seed": 2**40 + 3,
    },
}


def both(spec: RunSpec) -> tuple[NativeEngine, TorchEngine]:
    dataset = make_dataset(spec.task, spec.training.seed)
    return NativeEngine(spec, dataset, initial_state(spec)), TorchEngine(spec, dataset, initial_state(spec))


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_follows_the_torch_engine(tiny: RunSpec, level: str, variant: str) -> None:
    """Same batches, same masks, same steps: the two differ by rounding only."""
    spec = tiny.updated(VARIANTS[variant])
    fast, slow = both(spec)
    np.testing.assert_allclose(fast.advance(25), slow.advance(25), rtol=2e-4)
    dataset = make_dataset(spec.task, spec.training.seed)
    for pairs, labels in [(dataset.train_inputs, dataset.train_labels), (dataset.test_inputs, dataset.test_labels)]:
        said, expected = fast.evaluate(pairs, labels), slow.evaluate(pairs, labels)
        np.testing.assert_allclose(said.losses, expected.losses, rtol=0.01, atol=1e-4)
        assert (said.predictions == expected.predictions).mean() > 0.95
    ours, theirs = fast.state(), slow.state()
    assert ours.step == theirs.step == fast.step
    for name, array in {**theirs.weights, **theirs.moments}.items():
        scale = np.abs(array).max() + 1e-12
        found = {**ours.weights, **ours.moments}[name]
        np.testing.assert_allclose(found / scale, array / scale, atol=0.01, err_msg=name)


@pytest.mark.parametrize("variant", VARIANTS)
def test_interrupted_and_resumed_equals_uninterrupted(tiny: RunSpec, variant: str) -> None:
    spec = tiny.updated(VARIANTS[variant])
    dataset = make_dataset(spec.task, spec.training.seed)
    through, first = (NativeEngine(spec, dataset, initial_state(spec)) for _ in range(2))
    losses = through.advance(20)
    before = first.advance(7)
    second = NativeEngine(spec, dataset, first.state())
    after = second.advance(13)
    assert losses.tolist() == [*before, *after]
    ours, theirs = through.state(), second.state()
    for name, array in {**ours.weights, **ours.moments}.items():
        np.testing.assert_array_equal(array, {**theirs.weights, **theirs.moments}[name], err_msg=name)


def test_one_engine_takes_up_what_the_other_left(tiny: RunSpec) -> None:
    spec = tiny.updated(VARIANTS["everything"])
    dataset = make_dataset(spec.task, spec.training.seed)
    expected = TorchEngine(spec, dataset, initial_state(spec)).advance(20)
    start = NativeEngine(spec, dataset, initial_state(spec))
    start.advance(10)
    np.testing.assert_allclose(TorchEngine(spec, dataset, start.state()).advance(10), expected[10:], rtol=1e-3)


@pytest.mark.parametrize("operation", ["add", "divide"])
@pytest.mark.parametrize("alpha", [0.3, 0.8])
@pytest.mark.parametrize("width", [41, 410])  # Gram matrices of one block of neurons, and of several
def test_both_forms_of_the_gradient_agree(level: str, operation: str, alpha: float, width: int) -> None:
    spec = RunSpec().updated(
        {"task.modulus": 23, "task.operation": operation, "task.data_fraction": alpha, "model.width": width}
    )
    state = trained_a_little(spec)
    forms: tuple[Any, ...] = ("direct", "complement")
    direct, complement = (NativeEngine(spec, make_dataset(spec.task), state, form=form) for form in forms)
    assert (direct.uses_complement, complement.uses_complement) == (False, True)
    (loss, expected), (found_loss, found) = direct.gradient(), complement.gradient()
    assert found_loss == pytest.approx(loss, rel=1e-5)
    for name, array in expected.items():
        assert np.linalg.norm(found[name] - array) / np.linalg.norm(array) < 1e-5, name


@pytest.mark.parametrize(("alpha", "expected"), [(0.5, False), (0.9, True)])
def test_the_form_with_less_work_is_chosen(alpha: float, expected: bool) -> None:
    def uses_complement(fields: dict[str, object]) -> bool:
        spec = RunSpec().updated({"task.data_fraction": alpha, **fields})
        return NativeEngine(spec, make_dataset(spec.task), initial_state(spec)).uses_complement

    assert uses_complement({}) == expected
    others: list[dict[str, object]] = [
        {"model.activation": "relu"},
        {"training.loss": "cross-entropy"},
        {"model.dropout": 0.1},
        {"model.norm": "layer"},
        {"training.batch_size": 64},
    ]
    for fields in others:
        assert not uses_complement(fields)


def test_the_forms_give_the_same_phases_over_a_grid() -> None:
    """Rounding differs between the forms; what becomes of a network does not."""
    phases: dict[str, list[tuple[bool, bool]]] = {"direct": [], "complement": []}
    forms: tuple[Any, ...] = ("direct", "complement")
    for alpha in (0.6, 0.75, 0.9):
        for xi in (0.0, 0.2, 0.4):
            for decay in (0.0, 5.0):
                spec = RunSpec().updated(
                    {
                        "task.modulus": 31,
                        "task.data_fraction": alpha,
                        "task.corruption": xi,
                        "model.width": 120,
                        "optimizer.weight_decay": decay,
                    }
                )
                dataset = make_dataset(spec.task)
                for form in forms:
                    engine = NativeEngine(spec, dataset, initial_state(spec), form=form)
                    engine.advance(600)
                    train = engine.evaluate(dataset.train_inputs, dataset.train_labels).predictions
                    test = engine.evaluate(dataset.test_inputs, dataset.test_labels).predictions
                    phases[form].append(
                        (
                            bool((train == dataset.train_labels).mean() >= 0.9),
                            bool((test == dataset.test_labels).mean() >= 0.9),
                        )
                    )
    assert phases["direct"] == phases["complement"]
    assert len(set(phases["direct"])) > 1  # the grid crosses a boundary


def test_weights_that_decay_away_become_zero_not_denormal(tiny: RunSpec, level: str) -> None:
    spec = tiny.updated({"optimizer.weight_decay": 99.0, "optimizer.kind": "sgd"})
    engine = NativeEngine(spec, make_dataset(spec.task), initial_state(spec))
    engine.advance(200)
    for array in engine.weights().values():
        assert not np.logical_and(array != 0, np.abs(array) < np.finfo(np.float32).tiny).any()
    assert np.float32(1e-39) * np.float32(1) > 0  # and the process computes with denormals as before


@pytest.mark.parametrize("rate", [1e20, 1e308])
def test_a_diverging_run_is_noticed(tiny: RunSpec, rate: float) -> None:
    """Also one whose weights are not even finite when it is measured after the first step; a warning would fail."""
    result = run(tiny.updated({"optimizer.learning_rate": rate}), engine="native")
    assert (result.status, result.diverged_step) == ("diverged", 2)


# ---- choosing an engine ------------------------------------------------------------------------------------------


def test_auto_is_native_where_it_can_be(tiny: RunSpec) -> None:
    assert resolve_engine("auto", "cpu", tiny) == "native"
    assert resolve_engine("torch", "cpu", tiny) == "torch"
    bits = RunSpec().updated({"task.kind": "parity"})
    assert resolve_engine("auto", "cpu", bits) == "torch"
    with pytest.raises(EngineError, match=r"parity of 3 of 12 bits has other examples; engine 'torch' can"):
        resolve_engine("native", "cpu", bits)


def test_without_a_kernel_torch_trains_and_says_so_once(tiny: RunSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    from grokscope import engines

    engines._say_once_that_there_is_no_kernel.cache_clear()
    for module in (native, engines):
        monkeypatch.setattr(module, "native_module", lambda: None)
    with pytest.warns(RuntimeWarning, match="native kernel is not built"):
        assert make_engine(tiny, make_dataset(tiny.task), initial_state(tiny)).name == "torch"
    assert make_engine(tiny, make_dataset(tiny.task), initial_state(tiny)).name == "torch"  # a warning would fail
    with pytest.raises(EngineError, match="the kernel is not built here"):
        resolve_engine("native", "cpu", tiny)


def test_without_a_compiler_the_build_succeeds_without_the_kernel(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    built = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--build-lib", str(tmp_path), "--build-temp", str(tmp_path)],
        cwd=root, env=os.environ | {"CC": "false", "CXX": "false"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    assert not list(tmp_path.rglob("*.so"))


def test_an_unknown_level_is_refused(tiny: RunSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROKSCOPE_ISA", "avx1024")
    with pytest.raises(EngineError, match=r"GROKSCOPE_ISA = 'avx1024'.*this CPU has plain"):
        NativeEngine(tiny, make_dataset(tiny.task), initial_state(tiny))


def test_a_native_run_does_not_import_torch() -> None:
    script = (
        "import sys, grokscope as gs\n"
        "spec = gs.RunSpec().updated({'task.modulus': 11, 'model.width': 24, 'training.steps': 5})\n"
        "assert gs.run(spec).engine == 'native'\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


# ---- what comes from Python is checked ---------------------------------------------------------------------------


def trainer(**changed: object) -> Any:
    assert kernel is not None
    fields: dict[str, Any] = {
        "level": "plain", "modulus": 5, "width": 8, "depth": 2, "activation": "quadratic", "loss": "mse",
        "norm": "none", "optimizer": "adamw", "form": "automatic", "batch_size": 0, "dropout_threshold": 0,
        "dropout_scale": 1.0, "learning_rate": 0.01, "weight_decay": 0.0, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-8,
        "momentum": 0.0, "seed": 0, "pairs": np.array([[0, 1], [4, 4]]), "labels": np.array([1, 3]),
    }  # fmt: skip
    return kernel.Trainer(**fields | changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"level": "avx1024"},
        {"modulus": 0},
        {"modulus": 70000},
        {"width": 0},
        {"width": -3},
        {"depth": 1},
        {"depth": 65},
        {"depth": 3, "norm": "batch", "batch_size": 1},
        {"activation": "tanh"},
        {"loss": "hinge"},
        {"norm": "group"},
        {"optimizer": "lion"},
        {"form": "guess"},
        {"batch_size": 3},
        {"batch_size": -1},
        {"dropout_threshold": 70000},
        {"seed": -1},
        {"norm": "batch", "batch_size": 1},
        {"pairs": np.array([[0, 5], [4, 4]])},
        {"pairs": np.array([[0, -1], [4, 4]])},
        {"labels": np.array([1, 5])},
        {"labels": np.array([1])},
        {"labels": np.array([[1, 3]])},
        {"pairs": np.array([0, 1])},
        {"pairs": np.zeros((0, 2), np.int64), "labels": np.zeros(0, np.int64)},
    ],
)
def test_values_that_make_no_sense_raise(changed: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        trainer(**changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"pairs": np.array([[0.0, 1.0], [4.0, 4.0]])},
        {"pairs": np.array([[0, 1], [4, 4]], np.int32)},
        {"pairs": np.array([[0, 1], [4, 4]]).T},
        {"pairs": [[0, 1], [4, 4]]},
        {"labels": None},
        {"width": "8"},
    ],
)
def test_types_that_do_not_fit_raise(changed: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        trainer(**changed)


def test_methods_check_their_arguments() -> None:
    made = trainer()
    with pytest.raises(ValueError, match="steps"):
        made.advance(-1)
    with pytest.raises(ValueError, match="step"):
        made.step = -1
    for kind, name in [("weights", "X"), ("nothing", "U"), ("weights", "norm_scale"), ("gradient", "norm_mean")]:
        with pytest.raises(ValueError, match="there is no array"):
            made.get(kind, name)
    for array in (np.zeros((5, 7), np.float32), np.zeros((8, 5), np.float32), np.zeros(40, np.float32)):
        with pytest.raises(ValueError, match="wrong shape"):
            made.set("weights", "U", array)
    with pytest.raises(TypeError):
        made.set("weights", "U", np.zeros((5, 8)))
    with pytest.raises(ValueError, match="modulus"):
        made.evaluate(np.array([[5, 0]]), np.array([0]))
    predictions, losses = made.evaluate(np.zeros((0, 2), np.int64), np.zeros(0, np.int64))
    assert len(predictions) == len(losses) == 0
    assert made.advance(0).shape == (0,)


def test_two_threads_cannot_use_one_trainer_at_once(tiny: RunSpec) -> None:
    spec = RunSpec()
    made = NativeEngine(spec, make_dataset(spec.task), initial_state(spec))
    thread = threading.Thread(target=made.advance, args=(40,))
    thread.start()
    refused = 0
    while thread.is_alive():
        try:
            made.weights()
        except RuntimeError as error:
            refused += "another thread" in str(error)
    thread.join()
    assert refused > 0  # the thread trained without the GIL, and this one was told to wait
    assert made.step == 40
