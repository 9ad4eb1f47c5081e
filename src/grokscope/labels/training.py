"""Regularised networks on a table of numbers: what they say about rows that they were not trained on.

>>> rng = np.random.default_rng(0)
>>> labels = rng.integers(2, size=120)
>>> inputs = labels[:, None] + 0.1 * rng.normal(size=(120, 3))
>>> said = log_probabilities(inputs[:100], labels[:100], inputs[100:], classes=2, weight_decay=1.0, epochs=10)
>>> said.shape, bool((said.argmax(axis=1) == labels[100:]).all())
((20, 2), True)
"""

import numpy as np
import numpy.typing as npt

from grokscope.arrays import FloatArray, Int64Array
from grokscope.engines import initial_state, make_engine
from grokscope.models import make_network
from grokscope.spec import ModelSpec, OptimizerSpec, RunSpec, TrainingSpec
from grokscope.tasks import Dataset, Examples, InputShape, Task

_WIDTH, _DEPTH, _LEARNING_RATE = 128, 3, 0.002
_BATCHES = 20  # in an epoch, if batches of that size are not too small or too large
_LEAST_BATCH, _MOST_BATCH = 8, 256


class TableTask(Task):
    """Rows of numbers that are at hand: what a spec has to know of them."""

    kind: str = "table"
    rows: int = 1
    columns: int = 1
    labels: int = 2

    @property
    def example_count(self) -> int:
        """The rows to train on."""
        return self.rows

    @property
    def training_size(self) -> int:
        """All of them."""
        return self.rows

    @property
    def classes(self) -> int:
        """How many labels there are."""
        return self.labels

    @property
    def inputs(self) -> InputShape:
        """Vectors."""
        return InputShape(False, self.columns, 0)

    @property
    def named_by_pairs(self) -> bool:
        """There are no pairs."""
        return False

    def examples(self) -> Examples:
        """They are not kept here."""
        raise NotImplementedError


def log_probabilities(
    inputs: FloatArray,
    labels: Int64Array,
    asked: FloatArray,
    *,
    classes: int,
    weight_decay: float,
    epochs: int,
    seed: int = 0,
) -> FloatArray:
    """Train a three-layer ReLU network with AdamW on rows [n, d]; what it says about other rows [m, classes]."""
    from grokscope.models.module import logits_in_parts

    train, test = _scaled(inputs, inputs), _scaled(asked, inputs)
    n = len(train)
    batch = min(n, max(_LEAST_BATCH, min(_MOST_BATCH, n // _BATCHES)))
    spec = RunSpec(
        task=TableTask(rows=n, columns=train.shape[1], labels=classes, corruption=0),
        model=ModelSpec(depth=_DEPTH, width=_WIDTH, parameterization="standard"),
        optimizer=OptimizerSpec(learning_rate=_LEARNING_RATE, weight_decay=weight_decay),
        training=TrainingSpec(loss="cross-entropy", batch_size=batch, steps=epochs * (n // batch), seed=seed),
    )
    names, one = np.arange(n), slice(0, 1)
    data = Dataset(
        spec.task, classes, 0.0, train, labels, labels, names < 0, train[one], labels[one], names, names[one]
    )
    engine = make_engine(spec, data, initial_state(spec), "torch")
    engine.advance(spec.training.steps)
    module = make_network(spec.model, engine.weights())
    logits = np.concatenate([part.double().numpy() for _, part in logits_in_parts(module, test)])  # [m, classes]
    shifted = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def _scaled(rows: FloatArray, like: FloatArray) -> npt.NDArray[np.float32]:
    """Columns with the mean 0 and the deviation 1 of those trained on, and one that is always 1: a bias.

    What is far outside is cut off, so that one wild value does not blind the network to all others.
    """
    mean, deviation = like.mean(axis=0), like.std(axis=0)
    scaled = np.clip((rows - mean) / np.where(deviation > 0, deviation, 1), -10, 10)
    return np.concatenate([scaled, np.ones((len(rows), 1))], axis=1).astype(np.float32)
