"""Which labels of a table are probably wrong, following scikit-learn's conventions.

    from grokscope.labels.auditor import LabelAuditor

    auditor = LabelAuditor().fit(X, y)
    auditor.suspicious_       # which labels are probably wrong [n]
    auditor.scores_           # how wrong each looks; the highest is the worst [n]

Networks with enough weight decay follow the rule that most labels obey instead of learning wrong labels by heart: Full
Inversion. How much is enough is chosen by accuracy on rows that were held out, against their given labels, so nobody
needs to know which labels are right. Each row is then judged by a network that was trained without it.
"""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from grokscope.arrays import FloatArray, Int64Array
from grokscope.labels.training import log_probabilities
from grokscope.randomness import Stream, permutation


class LabelAuditor(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Finds wrong labels.

    Parameters: `weight_decays` to choose from, `folds` of the data, of which one at a time is judged by a network that
    was trained on the others, `epochs` of each training, and `random_state`: a whole number, or as scikit-learn has it
    a generator, or None for another result each time.

    After `fit`: `scores_` [n], by how much another label is more likely than the given one, as the logarithm of the
    ratio; `suspicious_` [n], where that is above 0; `suggested_` [n], the most likely label; `weight_decay_`, the
    chosen one, and `held_out_accuracy_`, for each weight decay; `classes_`.
    """

    def __init__(
        self,
        weight_decays: Sequence[float] = (0.3, 1.0, 3.0, 10.0),
        folds: int = 5,
        epochs: int = 30,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.weight_decays = weight_decays
        self.folds = folds
        self.epochs = epochs
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, *, on_training: Callable[[int, int], None] | None = None) -> Self:
        """Judge all labels of rows X [n, d]. `on_training` is told how many networks are trained, and of how many."""
        rows, given = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=4)
        self.classes_, labels = np.unique(given, return_inverse=True)
        _check_classes(self.classes_, labels)
        check_classification_targets(given)
        decays = self._checked_decays()
        seed = self._seed()
        fold_of = _folds(len(rows), self.folds, seed)
        trained, networks = count(1), len(decays) + int(fold_of.max())

        def judged(fold: int, decay: float) -> FloatArray:
            left_out = fold_of == fold
            said = log_probabilities(
                rows[~left_out],
                labels[~left_out],
                rows[left_out],
                classes=len(self.classes_),
                weight_decay=decay,
                epochs=self.epochs,
                seed=seed,
            )
            if on_training is not None:
                on_training(next(trained), networks)
            return said

        first = {decay: judged(0, decay) for decay in decays}
        held_out = labels[fold_of == 0]
        self.held_out_accuracy_ = {
            decay: float((said.argmax(axis=1) == held_out).mean()) for decay, said in first.items()
        }
        # Of equally good ones the strongest: it learns the fewest wrong labels by heart.
        self.weight_decay_ = max(decays, key=lambda decay: (self.held_out_accuracy_[decay], decay))
        said = np.empty((len(rows), len(self.classes_)))
        said[fold_of == 0] = first[self.weight_decay_]
        for fold in range(1, fold_of.max() + 1):
            said[fold_of == fold] = judged(fold, self.weight_decay_)
        self.scores_ = _margins(said, labels)
        self.suspicious_ = self.scores_ > 0
        self.suggested_ = self.classes_[said.argmax(axis=1)]
        return self

    def _checked_decays(self) -> list[float]:
        """The weight decays; here because scikit-learn checks parameters when they are used."""
        for name, least in (("folds", 2), ("epochs", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} = {getattr(self, name)} is not allowed: must be at least {least}")
        decays = list(dict.fromkeys(map(float, self.weight_decays)))
        if not decays or min(decays) < 0:
            raise ValueError(f"weight_decays = {self.weight_decays} is not allowed: name one or more, none below 0")
        return decays

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))

    def __sklearn_tags__(self) -> Tags:
        tags: Any = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _folds(rows: int, folds: int, seed: int) -> Int64Array:
    """In which part each row is [n]."""
    order = permutation(seed, Stream.SPLIT, 0, np.arange(rows))
    parts = np.empty(rows, np.int64)
    parts[order] = np.arange(rows) % min(folds, rows)
    return parts


def _check_classes(classes: npt.NDArray[Any], labels: Int64Array) -> None:
    if len(classes) < 2:
        raise ValueError(f"all labels are the same class, {classes[0]!r}: there is nothing to tell apart")
    if 2 * len(classes) > len(labels):
        raise ValueError(
            f"there are {len(classes)} different labels for {len(labels)} rows: labels should repeat; is this the "
            "column of the label?"
        )


def _margins(said: FloatArray, labels: Int64Array) -> FloatArray:
    """The logarithm of the best other label's probability over that of the given one [n]."""
    places = np.arange(len(labels))
    others = said.copy()
    others[places, labels] = -np.inf
    return np.asarray(others.max(axis=1) - said[places, labels])
