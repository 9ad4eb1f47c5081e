"""Networks: their initial weights, the analytic solution, and the torch module that evaluates them.

Weights are engine-neutral: a dictionary of float32 numpy arrays under the paper's names,

    U [N, p]   V [N, p]   W [p, N]

and, with a normalisation layer, norm_scale [N] and norm_shift [N], with BatchNorm also norm_mean [N] and
norm_variance [N]. This package does not import torch; `grokscope.models.mlp` does.
"""

from grokscope.models.analytic import analytic_weights
from grokscope.models.evaluation import Evaluation
from grokscope.models.initial import Weights, initial_weights
from grokscope.models.pruning import pruned

__all__ = ["Evaluation", "Weights", "analytic_weights", "initial_weights", "pruned"]
