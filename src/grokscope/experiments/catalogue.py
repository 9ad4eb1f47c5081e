"""All experiments by name: the paper's figures and tables, and what goes beyond them."""

import re

from grokscope.errors import GrokscopeError, did_you_mean
from grokscope.experiments import (
    analytic,
    beyond_fate,
    beyond_modulus,
    beyond_noise,
    beyond_probability,
    beyond_prunable,
    fig01,
    fig02,
    fig03,
    fig03a,
    fig03b,
    fig04,
    fig05,
    fig06,
    fig07,
    fig08,
    fig09,
    fig10,
    fig11,
    fig12,
    fig13,
    fig14,
    fig15,
    fig16,
    fig17,
    fig18,
    fig19,
    fig20,
    fig21,
    fig22,
    fig23,
    fig24,
    fig25,
    fig26,
    fig27,
    fig28,
    fig29,
    fig30,
    fig31,
    fig32,
    table1,
    table2,
)
from grokscope.experiments.claim import Claim
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.scale import PAPER
from grokscope.sweeps.plan import Plan

_MODULES = (
    table1,
    table2,
    fig01,
    fig02,
    fig03,
    fig03a,
    fig03b,
    fig04,
    fig05,
    fig06,
    fig07,
    fig08,
    fig09,
    fig10,
    fig11,
    fig12,
    fig13,
    fig14,
    fig15,
    fig16,
    fig17,
    fig18,
    fig19,
    fig20,
    fig21,
    fig22,
    fig23,
    fig24,
    fig25,
    fig26,
    fig27,
    fig28,
    fig29,
    fig30,
    fig31,
    fig32,
    analytic,
    beyond_fate,
    beyond_modulus,
    beyond_noise,
    beyond_probability,
    beyond_prunable,
)

EXPERIMENTS: dict[str, Experiment] = {module.EXPERIMENT.name: module.EXPERIMENT for module in _MODULES}
CLAIMS: dict[str, Claim] = {claim.id: claim for experiment in EXPERIMENTS.values() for claim in experiment.claims}
SWEEPS: dict[str, Plan] = {
    plan.name: plan for experiment in EXPERIMENTS.values() for plan in experiment.needs(PAPER).diagrams
}


def experiment_called(name: str) -> Experiment:
    """The experiment of this name, or an error with the nearest one.

    >>> experiment_called("fig1").name
    'fig01'
    """
    padded = re.sub(r"^fig(\d)$", r"fig0\1", name)
    if padded not in EXPERIMENTS:
        raise GrokscopeError(
            f"there is no figure {name!r}: `grokscope figures list` has them all{did_you_mean(name, EXPERIMENTS)}"
        )
    return EXPERIMENTS[padded]
