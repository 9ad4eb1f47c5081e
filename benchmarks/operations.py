"""How many operations the matrix products of a step are, at the least that is known: two for each multiply-add."""

from grokscope import RunSpec
from grokscope.models.transformer import MLP_EXPANSION


def operations(spec: RunSpec) -> float:
    """Forward, and twice as many backward; look-ups, norms, mixing and the optimiser are not counted.

    >>> round(operations(RunSpec()) / 1e9, 2)
    1.37
    >>> round(operations(RunSpec().updated({"task.data_fraction": 0.9})) / 1e9, 2)
    0.6
    >>> round(operations(RunSpec().updated({"model.kind": "transformer"})) / 1e9, 2)
    1.68
    >>> round(operations(RunSpec().updated({"model.kind": "transformer", "model.norm": "layer"})) / 1e9, 2)
    4.56
    >>> round(operations(RunSpec().updated({"model.kind": "transformer", "model.layers": 2})) / 1e9, 2)
    10.8
    """
    rows, p = spec.training.batch_size or spec.task.training_size, spec.task.modulus
    if spec.model.kind != "transformer":
        width = spec.model.width
        if _separates(spec):
            return min(over_training_pairs(spec), over_other_pairs(spec))
        return float(6 * rows * width * (p + (spec.model.depth - 2) * width))
    d, layers = spec.model.embed, spec.model.layers
    hidden = MLP_EXPANSION * d
    going_on = 1 if layers == 1 else 2  # positions, after the first layer
    until_activation = d * (d + hidden)  # of a row and position: the output of attention, the MLP's input
    each = until_activation + hidden * d
    projections = 2 * 3 * d * d  # of both positions: queries, keys, values
    last = projections - d * d + each  # no query of the first position
    first_layer = p * (projections - (d * d if layers == 1 else 0))  # of tokens, not of pairs
    further = rows * ((layers - 2) * (projections + 2 * each) + last) if layers > 1 else 0
    plain = rows * (going_on * each + d * p)
    if spec.model.norm != "none" or spec.model.dropout:
        return float(6 * (first_layer + further + plain))
    # Values of tokens go through the matrices before they are mixed (native/token_tables.hpp).
    hidden_tables = d * hidden * (d + 2 * p + going_on * p)
    if layers == 1:  # the MLP's output and the unembedding are one matrix (native/joined_output.hpp)
        by_tables = hidden_tables + d * p * (d + 3 * p) + hidden * p * (d + rows)
    else:
        by_tables = hidden_tables + 2 * p * d * d + rows * (going_on * hidden * d + d * p)
    return float(6 * (first_layer + further + min(plain, by_tables)))


def _separates(spec: RunSpec) -> bool:
    """Whether the full grid of pairs needs no loop over pairs (native/full_grid.hpp)."""
    model, training = spec.model, spec.training
    plain = model.depth == 2 and model.activation == "quadratic" and model.norm == "none" and not model.dropout
    return plain and training.loss == "mse" and training.batch_size is None


def over_training_pairs(spec: RunSpec) -> float:
    """Operations of a two-layer network's step that goes over the training pairs.

    >>> round(over_training_pairs(RunSpec()) / 1e9, 2)
    1.37
    """
    return float(6 * spec.task.training_size * spec.model.width * spec.task.modulus)


def over_other_pairs(spec: RunSpec) -> float:
    """The same for the full grid, less the pairs that are not in the training set.

    >>> round(over_other_pairs(RunSpec().updated({"task.data_fraction": 0.9})) / 1e9, 2)
    0.6
    """
    n, width, p = spec.task.training_size, spec.model.width, spec.task.modulus
    return float(6 * (p * p - n) * width * p + 9 * width * width * p + 24 * p * p * width)
