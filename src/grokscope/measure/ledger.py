"""What became of every corrupted example: when its drawn label was memorised, when its true answer was found, and
whether that was lost again.

A curve has only their numbers, so a ledger is kept while the network trains:

>>> from grokscope import RunSpec, make_dataset, run
>>> spec = RunSpec().updated({"task.modulus": 11, "model.width": 32, "training.steps": 5})
>>> recorder = LedgerRecorder(make_dataset(spec.task))
>>> result = run(spec, on_evaluation=recorder)
>>> recorder.ledger().examples.shape == (int(make_dataset(spec.task).corrupted.sum()), 2)
True
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from grokscope.arrays import Int64Array, short_repr
from grokscope.models import Evaluation
from grokscope.tasks import Dataset

NEVER = -1  # in place of a step


@dataclass(frozen=True)
class Ledger:
    """One entry for each corrupted example, in the order of the training set. Steps are measured ones, or NEVER."""

    steps: Int64Array  # [T]  the measured steps
    examples: Int64Array  # [C, positions]  m and n
    label: Int64Array  # [C]  drawn
    truth: Int64Array  # [C]
    predictions: Int64Array  # [T, C]

    __repr__ = short_repr

    @property
    def drawn_true(self) -> npt.NDArray[np.bool_]:
        """Examples whose drawn label happens to be the true one [C]: memorised and recovered are the same for them."""
        return np.asarray(self.label == self.truth)

    @property
    def memorised(self) -> npt.NDArray[np.bool_]:
        """Whether the network gave the drawn label [T, C]."""
        return np.asarray(self.predictions == self.label)

    @property
    def recovered(self) -> npt.NDArray[np.bool_]:
        """Whether the network gave the true answer [T, C]."""
        return np.asarray(self.predictions == self.truth)

    @property
    def memorised_step(self) -> Int64Array:
        """The first measured step at which the network gave the drawn label [C]."""
        return _first_step(self.steps, self.memorised)

    @property
    def recovered_step(self) -> Int64Array:
        """The first measured step at which it gave the true answer [C]."""
        return _first_step(self.steps, self.recovered)

    @property
    def lost_step(self) -> Int64Array:
        """The measured step from which on it gave the true answer no more [C]; NEVER if it still does, or never did."""
        recovered = self.recovered
        if not len(self.steps):
            return np.full(len(self.label), NEVER, dtype=np.int64)
        since = recovered[::-1].argmax(axis=0)  # measured steps after the last true answer; 0 if there is none at all
        lost = recovered.any(axis=0) & ~recovered[-1]
        return np.where(lost, self.steps[-since], NEVER)

    @property
    def final(self) -> list[str]:
        """What the network says in the end: memorised, recovered or other; correct if both are the same answer."""
        if not len(self.steps):
            return ["other"] * len(self.label)
        memorised, recovered = self.memorised[-1], self.recovered[-1]
        kinds = np.select(
            [memorised & recovered, memorised, recovered], ["correct", "memorised", "recovered"], default="other"
        )
        return [str(kind) for kind in kinds]

    def counts(self) -> dict[str, int]:
        """How many examples had which fate; those whose drawn label is the true one are counted apart."""
        apart = ~self.drawn_true
        memorised, recovered = (steps[apart] != NEVER for steps in (self.memorised_step, self.recovered_step))
        final = np.array(self.final, dtype=str)[apart]
        return {
            "corrupted": len(self.label),
            "drawn_true": int(self.drawn_true.sum()),
            "ever_memorised": int(memorised.sum()),
            "ever_recovered": int(recovered.sum()),
            "memorised_then_recovered": int((memorised & (final == "recovered")).sum()),
            "recovered_then_lost": int((self.lost_step[apart] != NEVER).sum()),
            "finally_memorised": int((final == "memorised").sum()),
            "finally_recovered": int((final == "recovered").sum()),
            "finally_other": int((final == "other").sum()),
        }


@dataclass
class LedgerRecorder:
    """Give it to a run as `on_evaluation`; afterwards it has the ledger."""

    dataset: Dataset
    _steps: list[int] = field(default_factory=list)
    _predictions: list[Int64Array] = field(default_factory=list)

    def __call__(self, step: int, train: Evaluation, test: Evaluation) -> None:
        """Note what the network says about the corrupted examples at a measured step."""
        self._steps.append(step)
        self._predictions.append(train.predictions[self.dataset.corrupted])

    def ledger(self) -> Ledger:
        """What was noted so far."""
        chosen = self.dataset.corrupted
        predictions = np.array(self._predictions, dtype=np.int64).reshape(len(self._steps), int(chosen.sum()))
        return Ledger(
            steps=np.array(self._steps, dtype=np.int64),
            examples=self.dataset.train_inputs[chosen],
            label=self.dataset.train_labels[chosen],
            truth=self.dataset.train_truth[chosen],
            predictions=predictions,
        )


def _first_step(steps: Int64Array, hits: npt.NDArray[np.bool_]) -> Int64Array:
    """The step of the first hit in each column of hits [T, C]."""
    if not len(steps):
        return np.full(hits.shape[1], NEVER, dtype=np.int64)
    return np.where(hits.any(axis=0), steps[hits.argmax(axis=0)], NEVER)
