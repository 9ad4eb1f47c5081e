"""How many operations the matrix products of a step are, at the least that is known: two for each multiply-add."""

from grokscope import RunSpec
from grokscope.models.transformer import MLP_EXPANSION


def operations(spec: RunSpec) -> float:
    """Forward, and twice as many backward; look-ups, norms and the optimiser are not counted.

    >>> round(operations(RunSpec()) / 1e9, 2)
    1.37
    >>> round(operations(RunSpec().updated({"model.kind": "transformer"})) / 1e9, 2)
    4.56
    """
    rows, p = spec.training.batch_size or spec.task.training_size, spec.task.modulus
    if spec.model.kind != "transformer":
        width = spec.model.width
        return float(6 * rows * width * (p + (spec.model.depth - 2) * width))
    d, layers = spec.model.embed, spec.model.layers
    each = d * d * (1 + 2 * MLP_EXPANSION)  # of a row and position: the output of attention, and the MLP
    projections = 2 * 3 * d * d  # of both positions: queries, keys, values
    last = projections - d * d + each  # no query of the first position
    first_layer = p * (projections - (d * d if layers == 1 else 0))  # of tokens, not of pairs
    if layers == 1:
        return float(6 * (first_layer + rows * (each + d * p)))
    return float(6 * (first_layer + rows * (2 * each + (layers - 2) * (projections + 2 * each) + last + d * p)))
