"""A corruption of your own: wrong labels that are nearly right.

grokscope train --corruption-kind examples/nearby_labels.py:Nearby
"""

import numpy as np

import grokscope as gs


class Nearby(gs.Corruption):
    """One more or one less than the true label, drawn for each example."""

    def labels(self, truth: np.ndarray, examples: np.ndarray, classes: int, seed: int) -> np.ndarray:
        """A label depends on its example and on the seed alone, so it is the same whatever else is corrupted."""
        step = 2 * gs.integers(seed, gs.Stream.LABELS, examples, below=2) - 1  # −1 or 1
        return (truth + step) % classes
