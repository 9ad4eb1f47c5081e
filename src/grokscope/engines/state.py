"""Everything that the next training step depends on, as plain arrays that any engine can take up."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from grokscope.models import Weights, initial_weights, is_statistic
from grokscope.spec import RunSpec

MOMENTS = {
    "adamw": ("first_moment", "second_moment"),
    "adam": ("first_moment", "second_moment"),
    "sgd": ("momentum",),
}


@dataclass(frozen=True)
class TrainingState:
    """The state after `step` steps. Batches and dropout are functions of the step, so no generator is kept."""

    step: int
    weights: Weights
    moments: dict[str, npt.NDArray[np.float32]]  # "first_moment.U", … as large as the weights they belong to


def initial_state(spec: RunSpec) -> TrainingState:
    """Step 0: initial weights, and moments of zero."""
    weights = initial_weights(spec.model, spec.task.modulus, spec.training.seed, spec.training.seeding)
    moments = {
        f"{moment}.{name}": np.zeros_like(array)
        for moment in MOMENTS[spec.optimizer.kind]
        for name, array in weights.items()
        if not is_statistic(name)
    }
    return TrainingState(0, weights, moments)
