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

from grokscope.engines import Engine, initial_state, make_engine
from grokscope.measure import Measurement, NeuronSpectra, neuron_spectra, take_measurement
from grokscope.models import Weights
from grokscope.phases import Phase, classify
from grokscope.result import RunResult
from grokscope.spec import RunSpec, TrainingSpec
from grokscope.tasks import Dataset, make_dataset


def execute(
    spec: RunSpec,
    *,
    engine: str = "auto",
    device: str = "cpu",
    on_measurement: Callable[[Measurement, NeuronSpectra], None] | None = None,
) -> RunResult:
    """Train the network that `spec` describes, measure it on the way, and name its phase.

    `on_measurement` sees every row of the curve when it is taken, and with it the spectra of all neurons, of which
    the result keeps only the last.
    """
    started = time.perf_counter()
    dataset = make_dataset(spec.task, spec.training.seed, spec.training.seeding)
    trainer = make_engine(spec, dataset, initial_state(spec), engine, device)

    curve: list[Measurement] = []
    spectra = None
    diverged_step = None
    for losses in train(trainer, spec.training):
        diverged_step = _first_bad_step(losses, trainer.step)
        if diverged_step is not None:
            break
        weights = trainer.weights()
        spectra = neuron_spectra(weights, spec.task.operation)
        curve.append(_measure(trainer, float(losses[-1]), weights, spectra, dataset))
        if on_measurement is not None:
            on_measurement(curve[-1], spectra)
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


def train(trainer: Engine, training: TrainingSpec) -> Iterator[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Advance from one measured step to the next; yields the losses of the steps between."""
    for step in training.measured_steps():
        if step > trainer.step:
            yield trainer.advance(step - trainer.step)


def _first_bad_step(losses: np.ndarray[tuple[int], np.dtype[np.float64]], last_step: int) -> int | None:
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
