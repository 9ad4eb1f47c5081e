"""How much of what hidden neurons do is a function of the sum."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch

from grokscope.experiments.quantities.deep import explained_by_sum
from grokscope.result import RunResult

P, NEURONS = 11, 400


def network(hidden: np.ndarray[Any, Any]) -> RunResult:
    """A made-up network whose last hidden neurons are these [p², N]."""
    module = SimpleNamespace(activations=lambda pairs: {"post2": torch.tensor(hidden)})
    spec = SimpleNamespace(task=SimpleNamespace(modulus=P), model=SimpleNamespace(depth=3))
    return cast(RunResult, SimpleNamespace(spec=spec, module=lambda: module))


def test_functions_of_the_sum_are_told_from_others() -> None:
    generator = np.random.default_rng(0)
    m, n = (each.ravel() for each in np.meshgrid(np.arange(P), np.arange(P), indexing="ij"))
    of_sum, of_first = generator.normal(size=(P, NEURONS)), generator.normal(size=(P, NEURONS))
    assert np.isclose(explained_by_sum(network(of_sum[(m + n) % P])), 1)
    assert np.isclose(explained_by_sum(network(of_first[m])), 0)  # over all n the sum says nothing about m
    noise = generator.normal(size=(P * P, NEURONS))
    assert np.isclose(explained_by_sum(network(noise)), 1 / (P + 1), atol=0.02)  # p − 1 of p² − 1 degrees of freedom
    assert np.isnan(explained_by_sum(network(np.zeros((P * P, 3)))))
