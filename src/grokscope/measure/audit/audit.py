"""Which training labels a network finds suspicious, and how many of those are wrong.

>>> from grokscope import RunSpec, TaskSpec, analytic_weights, make_dataset
>>> spec = RunSpec(task=TaskSpec(modulus=97, corruption=0.2))
>>> audit = audit_labels(spec, analytic_weights(modulus=97, width=500), make_dataset(spec.task))
>>> audit.scores["margin"].auroc, audit.scores["margin"].answers.recall
(1.0, 1.0)
"""

from dataclasses import dataclass

import numpy as np

from grokscope.arrays import BoolArray, FloatArray, Int64Array, short_repr
from grokscope.errors import GrokscopeError
from grokscope.measure.audit.cleanlab_baseline import check_cleanlab, cleanlab_scores
from grokscope.measure.audit.detection import (
    Flagged,
    PrecisionRecall,
    auroc,
    average_precision,
    flag,
    precision_recall,
    r_precision,
)
from grokscope.measure.audit.memorising import MemorisingNeurons, check_prune_rule, pruning_of
from grokscope.measure.audit.suspicion import softmax, suspicion
from grokscope.measure.spectra.spectrum import neuron_spectra
from grokscope.models import Weights
from grokscope.spec import RunSpec
from grokscope.tasks import Dataset

BASELINES = ("cleanlab",)
_PRUNED_SCORES = ("margin", "loss")


@dataclass(frozen=True)
class Score:
    """One score of all training examples against the labels that are wrong; None is what does not exist."""

    values: FloatArray  # [n]  higher is more suspicious
    curve: PrecisionRecall | None
    auroc: float | None
    average_precision: float | None
    r_precision: float | None
    answers: Flagged  # if every label is called wrong that is not the answer of the network behind the score

    def metrics(self) -> dict[str, float | None]:
        """All but arrays, by name."""
        return {
            "auroc": self.auroc,
            "average_precision": self.average_precision,
            "r_precision": self.r_precision,
            "threshold_precision": self.answers.precision,
            "threshold_recall": self.answers.recall,
        }


@dataclass(frozen=True)
class Audit:
    """What the scores of one network are worth on its training set."""

    dataset: Dataset
    predicted: Int64Array  # [n]  the network's answers
    pruned_predicted: Int64Array | None  # [n]  its answers without the pruned neurons
    scores: dict[str, Score]
    pruning: MemorisingNeurons | None  # None without pruned scores
    ranked_by: str  # the score to rank with when nobody knows what is wrong

    __repr__ = short_repr

    @property
    def wrong(self) -> BoolArray:
        """Labels that are not the truth [n]."""
        return wrong_labels(self.dataset)

    @property
    def drawn_right(self) -> int:
        """Corrupted examples whose drawn label is the true one by chance."""
        return int((self.dataset.corrupted & ~self.wrong).sum())

    @property
    def best(self) -> str:
        """The score of the highest AUROC, which takes the truth to know; of equals the one ranked by."""
        order = [self.ranked_by, *self.scores]
        return max(order, key=lambda name: -1.0 if (value := self.scores[name].auroc) is None else value)

    def most_suspicious(self) -> Int64Array:
        """The training examples, by their place in the dataset, from the most suspicious to the least [n]."""
        return np.argsort(-self.scores[self.ranked_by].values, kind="stable")


def wrong_labels(dataset: Dataset) -> BoolArray:
    """Labels that are not the truth [n]: nearly all corrupted ones, for a drawn label may be right by chance."""
    return np.asarray(dataset.train_labels != dataset.train_truth)


def audit_labels(
    spec: RunSpec, weights: Weights, dataset: Dataset, *, prune: str = "auto", baseline: str | None = None
) -> Audit:
    """Score every training example by a network's logits in evaluation mode, and compare with what is wrong.

    Two-layer networks are also asked without the neurons that memorise, which `prune` chooses by their weights alone;
    see `check_prune_rule`. `baseline="cleanlab"` adds its scores.
    """
    check_prune_rule(prune)
    if baseline not in (None, *BASELINES):
        raise GrokscopeError(f"--baseline = {baseline!r} is not allowed: must be {' or '.join(BASELINES)}")
    if baseline:
        check_cleanlab()
    wrong = wrong_labels(dataset)

    def rated(values: dict[str, FloatArray], predicted: Int64Array) -> dict[str, Score]:
        answers = flag(predicted != dataset.train_labels, wrong)
        return {name: _against(wrong, column, answers) for name, column in values.items()}

    values, predicted = _scored(spec, weights, dataset, baseline)
    scores = rated(values, predicted)
    pruning = pruned_predicted = None
    spectra = neuron_spectra(spec.model, weights, spec.task)
    if spectra is not None and spec.model.why_not_prunable() is None:
        pruning = pruning_of(prune, spectra.neuron_ipr)
    if pruning is not None:
        values, pruned_predicted = _scored(spec, spec.model.pruned(weights, pruning.neurons), dataset)
        scores |= rated({f"pruned_{name}": values[name] for name in _PRUNED_SCORES}, pruned_predicted)
    ranked_by = "margin" if pruning is None else "pruned_margin"
    return Audit(dataset, predicted, pruned_predicted, scores, pruning, ranked_by)


def _scored(
    spec: RunSpec, weights: Weights, dataset: Dataset, baseline: str | None = None
) -> tuple[dict[str, FloatArray], Int64Array]:
    """All scores that the network of these weights gives [n each], and its answers [n]."""
    from grokscope.models.module import logits_in_parts

    loss = spec.training.loss
    parts, answers = [], []
    for rows, tensor in logits_in_parts(spec.model.module(weights), dataset.train_inputs):
        logits, labels = tensor.double().numpy(), dataset.train_labels[rows]
        if not np.isfinite(logits).all():
            raise GrokscopeError("the network's logits are not finite numbers: there is nothing to audit with")
        scores = suspicion(logits, labels, loss)
        if baseline == "cleanlab":
            scores |= cleanlab_scores(softmax(logits, loss), labels)
        parts.append(scores)
        answers.append(logits.argmax(axis=1))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, np.concatenate(answers)


def _against(wrong: BoolArray, values: FloatArray, answers: Flagged) -> Score:
    return Score(
        values=values,
        curve=precision_recall(values, wrong),
        auroc=auroc(values, wrong),
        average_precision=average_precision(values, wrong),
        r_precision=r_precision(values, wrong),
        answers=answers,
    )
