"""Optimisers: how gradients become steps."""

from grokscope.optimizers.adam import Adam, AdamW
from grokscope.optimizers.optimizer import Optimizer, UnresolvedOptimizer
from grokscope.optimizers.sgd import SGD

Optimizer.built_in = (AdamW, Adam, SGD)

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "UnresolvedOptimizer"]
