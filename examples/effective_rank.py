"""A measurement of your own: how many directions the output matrix uses.

grokscope train --measure examples/effective_rank.py:EffectiveRank
grokscope runs export RUN --out curve.csv      # has a column effective_rank
"""

import math
from collections.abc import Mapping

import numpy as np

import grokscope as gs


class EffectiveRank(gs.Measurement):
    """exp of the entropy of the singular values, which sum to 1 (Roy and Vetterli, 2007)."""

    columns = ("effective_rank",)

    def measure(self, moment: gs.Moment) -> Mapping[str, float]:
        """Of the last matrix of the network: 1 if it is an outer product, its size if it is orthogonal."""
        matrix = moment.weights["W"] if "W" in moment.weights else list(moment.weights.values())[-1]
        values = np.linalg.svd(np.atleast_2d(matrix), compute_uv=False)
        if not values.sum() > 0:
            return {"effective_rank": math.nan}
        shares = values[values > 0] / values.sum()
        return {"effective_rank": float(np.exp(-(shares * np.log(shares)).sum()))}
