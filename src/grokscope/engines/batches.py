"""Which examples each step sees: all of them, or mini-batches in an order that depends on the seed alone."""

from grokscope.arrays import Int64Array
from grokscope.randomness import Stream, permutation


class BatchOrder:
    """A fresh permutation of the training set each epoch; the last incomplete batch is dropped.

    >>> import numpy as np
    >>> order = BatchOrder(np.arange(5), batch_size=2, seed=0)
    >>> [order.batch(step).tolist() for step in (1, 2)]
    [[2, 4], [0, 1]]
    """

    def __init__(self, examples: Int64Array, batch_size: int, seed: int) -> None:
        self._examples, self._batch_size, self._seed = examples, batch_size, seed
        self._batches_per_epoch = len(examples) // batch_size
        self._epoch, self._order = -1, examples

    def batch(self, step: int) -> Int64Array:
        """Indices into the training set of the examples of this step, which counts from 1."""
        epoch, place = divmod(step - 1, self._batches_per_epoch)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, permutation(self._seed, Stream.BATCHES, epoch, self._examples)
        return self._order[place * self._batch_size : (place + 1) * self._batch_size]
