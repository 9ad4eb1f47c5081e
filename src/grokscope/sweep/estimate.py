"""What a sweep will take, from a short measurement on this machine."""

import time
from collections.abc import Sequence

from grokscope.engines import initial_state, make_engine
from grokscope.measure import Measurement, neuron_spectra
from grokscope.spec import RunSpec
from grokscope.tasks import make_dataset

SAMPLES = 12
SAMPLE_SECONDS = 0.15
INDEX_BYTES = 2600  # of a run in the index: its spec and its last measurement as text
FILE_BYTES = 3000  # of names and sizes in a run's file


def relative_cost(spec: RunSpec) -> float:
    """Proportional to what a run takes, roughly: its multiplications. For dividing up the time that is left."""
    rows = spec.training.batch_size or spec.task.training_size
    return float(spec.training.steps * rows * spec.model.width * spec.task.modulus)


def estimated_seconds(specs: Sequence[RunSpec], engine: str) -> float:
    """Of all these runs one after another on one core, from some steps of a few of them."""
    if not specs:
        return 0.0
    # Multiples of the golden ratio spread evenly and never fall into step with an axis.
    chosen = {int(len(specs) * (i * 0.6180339887 % 1)) for i in range(min(SAMPLES, len(specs)))}
    return len(specs) * sum(_seconds_of(specs[index], engine) for index in chosen) / len(chosen)


def _seconds_of(spec: RunSpec, engine: str) -> float:
    dataset = make_dataset(spec.task, spec.training.seed, spec.training.seeding)
    trainer = make_engine(spec, dataset, initial_state(spec), engine)
    trainer.advance(1)  # buffers and caches
    started = time.perf_counter()
    trainer.evaluate(dataset.train_pairs, dataset.train_labels)
    trainer.evaluate(dataset.test_pairs, dataset.test_labels)
    neuron_spectra(trainer.weights(), spec.task.operation)
    measuring = time.perf_counter() - started
    steps, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < SAMPLE_SECONDS or not steps:
        trainer.advance(max(1, steps))
        steps += max(1, steps)
    return elapsed / steps * spec.training.steps + measuring * len(spec.training.measured_steps())


def estimated_bytes(specs: Sequence[RunSpec], *, weights: bool) -> int:
    """That these runs will take in a store."""
    return sum(_bytes_of(spec, weights=weights) for spec in specs)


def _bytes_of(spec: RunSpec, *, weights: bool) -> int:
    curve = 8 * len(Measurement.__dataclass_fields__) * len(spec.training.measured_steps())
    neurons = 3 * spec.model.width * (4 + 4 + 2)
    network = 3 * spec.model.width * spec.task.modulus * 4 if weights else 0
    return INDEX_BYTES + FILE_BYTES + curve + neurons + network
