"""What the arrays are called that the vectors of some neurons are views of.

>>> from grokscope.models import MLP, analytic_weights
>>> weights = analytic_weights(modulus=7, width=9)
>>> where_vectors_lie(MLP(width=9).input_neurons(weights), weights)
{'u': ('U', 'Rows'), 'v': ('V', 'Rows'), 'w': ('W', 'Columns')}
"""

import numpy as np

from grokscope.models import Neurons, Weights


def where_vectors_lie(neurons: Neurons, weights: Weights) -> dict[str, tuple[str, str]]:
    """For each letter the name of its array, and whether the vectors are its rows or columns; without those that are
    not views of an array of these weights."""
    found = {}
    for letter, vectors in neurons.vectors.items():
        for name, array in weights.items():
            if array.ndim == 2 and np.shares_memory(vectors, array):
                found[letter] = (name, "Rows" if vectors.strides == array.strides else "Columns")
    return found
