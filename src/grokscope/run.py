"""One run, from spec to result. Read this file first: it is the architecture.

    spec → dataset → model → training → measurements → result

>>> from grokscope.spec import ModelSpec, RunSpec, TaskSpec, TrainingSpec
>>> spec = RunSpec(task=TaskSpec(modulus=11), model=ModelSpec(width=32), training=TrainingSpec(steps=5))
>>> result = execute(spec)
>>> result.status, len(result.curve), result.weights["U"].shape
('finished', 5, (32, 11))
"""

import math
import time
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from grokscope.engines import Engine, check_engine, initial_state, make_engine
from grokscope.measure import Measurement, NeuronSpectra, neuron_spectra, take_measurement
from grokscope.models import Weights
from grokscope.phases import Phase, classify
from grokscope.result import Checkpoint, RunResult
from grokscope.spec import RunSpec, TrainingSpec
from grokscope.tasks import Dataset, make_dataset

PAUSE_SECONDS = 0.5  # the longest that training goes on before somebody may look at it, if a step is not longer


def execute(
    spec: RunSpec,
    *,
    engine: str = "auto",
    device: str = "cpu",
    on_measurement: Callable[[Measurement, NeuronSpectra], None] | None = None,
    start: Checkpoint | None = None,
    on_pause: Callable[[Callable[[], Checkpoint]], None] | None = None,
) -> RunResult:
    """Train the network that `spec` describes, measure it on the way, and name its phase.

    `on_measurement` sees every row of the curve when it is taken, and with it the spectra of all neurons, of which
    the result keeps only the last. `on_pause` is called several times a second, unless a single step takes longer, with
    a function that makes a checkpoint; `start` goes on from one, to the same result as without the interruption. One
    of another engine, which rounds otherwise, is not used.
    """
    if start and start.engine != check_engine(engine, device, spec):
        start = None
    started = time.perf_counter() - (start.seconds if start else 0)
    dataset = make_dataset(spec.task, spec.training.seed, spec.training.seeding)
    trainer = make_engine(spec, dataset, start.state if start else initial_state(spec), engine, device)

    curve: list[Measurement] = list(start.curve) if start else []
    spectra = None
    diverged_step = None
    measured = set(spec.training.measured_steps())
    for losses in train(trainer, spec.training):
        diverged_step = _first_bad_step(losses, trainer.step)
        if diverged_step is not None:
            break
        if trainer.step in measured:
            weights = trainer.weights()
            spectra = neuron_spectra(weights, spec.task.operation)
            curve.append(_measure(trainer, float(losses[-1]), weights, spectra, dataset))
            if on_measurement is not None:
                on_measurement(curve[-1], spectra)
        if on_pause is not None and trainer.step < spec.training.steps:
            on_pause(lambda: Checkpoint(trainer.state(), tuple(curve), time.perf_counter() - started, trainer.name))
    if diverged_step is None and not math.isfinite(curve[-1].test_loss):
        diverged_step = trainer.step  # there was no further step whose loss would have shown it

    finished = diverged_step is None
    return RunResult(
        spec=spec,
        engine=trainer.name,
        seconds=time.perf_counter() - started,
        status="finished" if finished else "diverged",
        diverged_step=diverged_step,
        weights=trainer.weights(),
        curve=tuple(curve),
        neurons=spectra if finished else None,
        phase=_phase(curve, dataset) if finished else None,
    )


def train(trainer: Engine, training: TrainingSpec) -> Iterator[npt.NDArray[np.float64]]:
    """Advance to the last step, pausing at every measured one and where the time is up; yields the losses since."""
    at_once = 1  # steps between pauses; what a step costs shows only when it is taken
    for goal in training.measured_steps():
        while trainer.step < goal:
            count = min(goal - trainer.step, at_once)
            started = time.perf_counter()
            losses = trainer.advance(count)
            elapsed = time.perf_counter() - started
            if elapsed < PAUSE_SECONDS / 2:
                at_once = max(at_once, 2 * count)
            elif elapsed > PAUSE_SECONDS:
                at_once = max(1, count // 2)
            yield losses


def _first_bad_step(losses: npt.NDArray[np.float64], last_step: int) -> int | None:
    bad = np.flatnonzero(~np.isfinite(losses))
    return int(last_step - len(losses) + 1 + bad[0]) if len(bad) else None


def _measure(
    trainer: Engine, train_loss: float, weights: Weights, spectra: NeuronSpectra, dataset: Dataset
) -> Measurement:
    return take_measurement(
        step=trainer.step,
        train_loss=train_loss,
        train=trainer.evaluate(dataset.train_pairs, dataset.train_labels),
        test=trainer.evaluate(dataset.test_pairs, dataset.test_labels),
        weights=weights,
        spectra=spectra,
        dataset=dataset,
    )


def _phase(curve: list[Measurement], dataset: Dataset) -> Phase:
    return classify(
        train_accuracy=curve[-1].train_accuracy,
        test_accuracy=curve[-1].test_accuracy,
        corruption=dataset.corruption,
        best_test_accuracy=max(row.test_accuracy for row in curve),
    )
