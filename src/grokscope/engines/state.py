"""Everything that the next training step depends on, as plain arrays that any engine can take up."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from grokscope.extension import is_reference
from grokscope.models import Weights, checked_weights, is_statistic
from grokscope.spec import RunSpec


@dataclass(frozen=True)
class TrainingState:
    """The state after `step` steps. Batches and dropout are functions of the step, so no generator is kept."""

    step: int
    weights: Weights
    moments: dict[str, npt.NDArray[np.float32]]  # "first_moment.U", … as large as the weights they belong to


def initial_state(spec: RunSpec) -> TrainingState:
    """Step 0: initial weights, and moments of zero."""
    weights = spec.model.initial_weights(spec.task, spec.training.seed, spec.training.seeding)
    if is_reference(spec.model.kind):
        checked_weights(spec.model, weights)
    moments = {
        f"{moment}.{name}": np.zeros_like(array)
        for moment in spec.optimizer.moments
        for name, array in weights.items()
        if not is_statistic(name)
    }
    return TrainingState(0, weights, moments)
