"""How many operations the matrix products of a step are, at the least that is known: two for each multiply-add."""

from grokscope import RunSpec
from grokscope.models.transformer import MLP_EXPANSION


def operations(spec: RunSpec) -> float:
    """Forward, and twice as many backward; look-ups, norms, mixing and the optimiser are not counted.

    >>> round(operations(RunSpec()) / 1e9, 2)
    1.37
    >>> round(operations(RunSpec().updated({"model.kind": "transformer"})) / 1e9, 2)
    2.67
    >>> round(operations(RunSpec().updated({"model.kind": "transformer", "model.norm": "layer"})) / 1e9, 2)
    4.56
    """
    rows, p = spec.training.batch_size or spec.task.training_size, spec.task.modulus
    if spec.model.kind != "transformer":
        width = spec.model.width
        return float(6 * rows * width * (p + (spec.model.depth - 2) * width))
    d, layers, heads = spec.model.embed, spec.model.layers, spec.model.heads
    going_on = 1 if layers == 1 else 2  # positions, after the first layer
    until_activation = d * d * (1 + MLP_EXPANSION)  # of a row and position: the output of attention, the MLP's input
    after_it = d * d * MLP_EXPANSION
    each = until_activation + after_it
    projections = 2 * 3 * d * d  # of both positions: queries, keys, values
    last = projections - d * d + each  # no query of the first position
    first_layer = p * (projections - (d * d if layers == 1 else 0))  # of tokens, not of pairs
    mixing = going_on * rows * until_activation
    if spec.model.norm == "none" and not spec.model.dropout:  # of tokens and heads, where these are fewer
        mixing = min(mixing, p * d * d * (2 * heads * (1 + MLP_EXPANSION) + going_on * MLP_EXPANSION))
    first_layer += mixing + going_on * rows * after_it
    further = 0 if layers == 1 else (layers - 2) * (projections + 2 * each) + last
    return float(6 * (first_layer + rows * (further + d * p)))
