"""Wrong labels, and the mask that remembers which they are."""

import numpy as np
import numpy.typing as npt

from grokscope.randomness import Int64Array, Stream, integers
from grokscope.spec import Seeding, TaskSpec

_REFERENCE_LABEL_SEED = 0


def corrupt(
    task: TaskSpec, pairs: Int64Array, truth: Int64Array, seed: int, seeding: Seeding
) -> tuple[Int64Array, npt.NDArray[np.bool_], float]:
    """Labels of the training set with the first int(ξ·n) eligible ones drawn anew, the mask of those, and n's share.

    Eligible are all examples, or those with m in `task.corrupted_operands`; ξ is a fraction of the eligible ones.
    """
    eligible = np.arange(len(pairs))
    if task.corrupted_operands is not None:
        eligible = np.flatnonzero(np.isin(pairs[:, 0], task.corrupted_operands))
    chosen = eligible[: int(task.corruption * len(eligible))]
    labels = truth.copy()
    labels[chosen] = _drawn_labels(task, pairs[chosen], truth[chosen], seed, seeding)
    mask = np.zeros(len(pairs), dtype=np.bool_)
    mask[chosen] = True
    return labels, mask, len(eligible) / len(pairs)


def _drawn_labels(task: TaskSpec, pairs: Int64Array, truth: Int64Array, seed: int, seeding: Seeding) -> Int64Array:
    p = task.modulus
    if seeding == "reference":
        return _reference_labels(p, len(pairs))
    # A label depends on its example alone, so it is the same at every α and ξ.
    examples = pairs @ np.array([p, 1])
    match task.corruption_kind:
        case "symmetric":
            return integers(seed, Stream.LABELS, examples, below=p)
        case "symmetric-wrong":
            return (truth + 1 + integers(seed, Stream.LABELS, examples, below=p - 1)) % p
        case "asymmetric":
            return (truth + 1) % p


def _reference_labels(modulus: int, count: int) -> Int64Array:
    """The authors' labels, from their generator: torch's, in a state of its own."""
    import torch

    generator = torch.Generator().manual_seed(_REFERENCE_LABEL_SEED)
    labels: Int64Array = torch.randint(0, modulus, (count,), generator=generator).numpy()
    return labels
