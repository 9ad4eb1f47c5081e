"""All experiments by name: the paper's figures and tables, and what goes beyond them."""

import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from types import ModuleType

from grokscope.errors import GrokscopeError, did_you_mean
from grokscope.experiments.claim import Claim
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.own import experiment_from, is_file
from grokscope.experiments.scale import PAPER
from grokscope.sweeps.plan import Plan

_MODULES = """
    paper.table1 paper.table2
    paper.fig01 paper.fig02 paper.fig03 paper.fig04 paper.fig05 paper.fig06 paper.fig07 paper.fig07a paper.fig07b
    paper.fig08 paper.fig09_10_11 paper.fig12 paper.fig13 paper.fig14 paper.fig15 paper.fig16 paper.fig17 paper.fig18
    paper.fig19 paper.fig20_21_22 paper.fig23 paper.fig24 paper.fig25 paper.fig26 paper.fig27 paper.fig28 paper.fig29
    paper.fig30 paper.fig31 paper.fig32 paper.analytic
    beyond.fate beyond.groups beyond.modulus beyond.noise beyond.probability beyond.prunable
"""


def experiments_in(module: ModuleType) -> tuple[Experiment, ...]:
    """The EXPERIMENT of a module, or its EXPERIMENTS."""
    found = module.EXPERIMENTS if hasattr(module, "EXPERIMENTS") else (module.EXPERIMENT,)
    return tuple(found)


EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for name in _MODULES.split()
    for experiment in experiments_in(import_module(f"grokscope.experiments.{name}"))
}
CLAIMS: dict[str, Claim] = {claim.id: claim for experiment in EXPERIMENTS.values() for claim in experiment.claims}
SWEEPS: dict[str, Plan] = {
    plan.name: plan for experiment in EXPERIMENTS.values() for plan in experiment.needs(PAPER).diagrams
}


class UnknownNameError(GrokscopeError):
    """A name that no experiment has."""


def experiment_called(name: str) -> Experiment:
    """The experiment of this name or in this file, or an error with the nearest name.

    >>> experiment_called("fig1").name, experiment_called("fig3a").name
    ('fig01', 'fig03a')
    """
    if is_file(name):
        return _with_names_of_its_own(experiment_from(name))
    padded = re.sub(r"^fig(\d[a-z]?)$", r"fig0\1", name)
    if padded not in EXPERIMENTS:
        raise UnknownNameError(
            f"there is no figure {name!r}: `grokscope figures list` has them all{did_you_mean(name, EXPERIMENTS)}"
        )
    return EXPERIMENTS[padded]


def _with_names_of_its_own(experiment: Experiment) -> Experiment:
    """A user's figure under a name of ours would be saved over it, and a claim would stand in for it."""
    taken = [experiment.name] if experiment.name in EXPERIMENTS else []
    taken += [claim.id for claim in experiment.claims if claim.id in CLAIMS]
    if taken:
        raise GrokscopeError(
            f"{experiment.file}: there is a {taken[0]!r} in grokscope already; call yours something else"
        )
    return experiment


ALL = "all"


def experiments_called(names: Iterable[str], *, all_allowed: bool = False) -> list[Experiment]:
    """The experiments of these names, each once; refuses those that cannot be made.

    >>> [experiment.name for experiment in experiments_called(["fig1", "fig03a", "fig01"])]
    ['fig01', 'fig03a']
    """
    possible = [name for name, experiment in EXPERIMENTS.items() if not experiment.unavailable]
    spelt_out = [name for word in names for name in (possible if all_allowed and word == ALL else [word])]
    chosen = {experiment.name: experiment for experiment in map(experiment_called, spelt_out)}
    for experiment in chosen.values():
        if experiment.unavailable:
            raise GrokscopeError(f"{experiment.name} cannot be made: {experiment.unavailable}")
    return list(chosen.values())


def claims_about(experiments: Iterable[Experiment]) -> list[Claim]:
    """The claims of all of them, each once."""
    return list({claim.id: claim for experiment in experiments for claim in experiment.claims}.values())


def claims_called(names: Sequence[str]) -> list[Claim]:
    """The claims with these names and those about figures with these names; all whose runs can be done if there are no
    names.

    >>> [claim.id for claim in claims_called(["two-peaks", "fig31"])]
    ['two-peaks', 'multiplication-same-phases', 'multiplication-logarithmic-waves']
    """
    possible = (experiment for experiment in EXPERIMENTS.values() if not experiment.unavailable)
    chosen = {} if names else {claim.id: claim for claim in claims_about(possible)}
    for name in names:
        if name in CLAIMS:
            chosen[name] = CLAIMS[name]
            continue
        try:
            experiment = experiment_called(name)
        except UnknownNameError:
            nearest = did_you_mean(name, [*CLAIMS, *EXPERIMENTS])
            raise GrokscopeError(
                f"there is no claim or figure {name!r}: `grokscope figures list` has them all{nearest}"
            ) from None
        if experiment.unavailable:
            raise GrokscopeError(f"{experiment.name} cannot be made: {experiment.unavailable}")
        if not experiment.claims:
            raise GrokscopeError(f"there are no claims about {experiment.name}; `grokscope figure` draws it")
        chosen |= {claim.id: claim for claim in experiment.claims}
    return list(chosen.values())
