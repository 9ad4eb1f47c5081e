"""All experiments by name: the paper's figures and tables, and what goes beyond them."""

from grokscope.errors import GrokscopeError, did_you_mean
from grokscope.experiments import (
    analytic,
    fig01,
    fig02,
    fig03,
    fig04,
    fig06,
    fig08,
    fig17,
    fig18,
    fig23,
    fig32,
    table1,
    table2,
)
from grokscope.experiments.claim import Claim
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.scale import PAPER
from grokscope.sweep.plan import Plan

_MODULES = (fig01, fig02, fig03, fig04, fig06, fig08, fig17, fig18, fig23, fig32, table1, table2, analytic)

EXPERIMENTS: dict[str, Experiment] = {module.EXPERIMENT.name: module.EXPERIMENT for module in _MODULES}
CLAIMS: dict[str, Claim] = {claim.id: claim for experiment in EXPERIMENTS.values() for claim in experiment.claims}
SWEEPS: dict[str, Plan] = {
    plan.name: plan for experiment in EXPERIMENTS.values() for plan in experiment.needs(PAPER).diagrams
}


def experiment_called(name: str) -> Experiment:
    """The experiment of this name, or an error with the nearest one."""
    if name not in EXPERIMENTS:
        raise GrokscopeError(
            f"there is no figure {name!r}{did_you_mean(name, EXPERIMENTS)}; `grokscope figures list` has them all"
        )
    return EXPERIMENTS[name]
