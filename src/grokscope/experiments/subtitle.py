"""The line above a figure: what its networks share, and the full sizes where theirs are smaller."""

from grokscope.experiments.evidence import Needs
from grokscope.experiments.scale import PAPER, Scale
from grokscope.plots.finishing import shared_settings
from grokscope.sweeps.plan import GRID, Plan


def subtitle(needs: Needs, scale: Scale) -> str:
    """What a figure that needs these runs has above it at a scale."""
    plans, networks = needs.plans(scale), [scale.network(spec) for spec in needs.networks]
    seeds = scale.seed_count(needs.seeds)
    own = shared_settings(plans, networks, seeds)
    full = shared_settings(needs.diagrams, needs.networks, needs.seeds)
    if not scale.full and own != full:
        diagrams, full_diagrams = shared_settings(plans), shared_settings(needs.diagrams)
        if networks and networks == list(needs.networks) and diagrams != full_diagrams:  # only diagrams are smaller
            beside = shared_settings(networks=networks, seeds=seeds)
            return f"diagrams: {_smaller(diagrams, full_diagrams)}; beside them: {beside}"
        return _smaller(own, full)
    own = shared_settings(plans, networks, seeds, max([needs.seeds, *(plan.seed_count for plan in needs.diagrams)]))
    for whole, plan in zip(needs.diagrams, plans, strict=True):
        if _cells_of(plan) != _cells_of(whole):
            return f"{own} ({_cells_of(plan)} of {_cells_of(whole)} cells)"
    return own


def _smaller(own: str, full: str) -> str:
    return f"{own} (smaller than with --scale {PAPER.name}: {full})"


def _cells_of(plan: Plan) -> str:
    """The size of a diagram's panels.

    >>> from grokscope.sweeps.axes import Axis
    >>> _cells_of(Plan("3a", axes=(Axis.over("task.data_fraction", (0.1, 0.9)), Axis.over("task.corruption", (0,)))))
    '2 × 1'
    """
    return " × ".join(str(len(axis)) for axis in plan.axes if axis.fields[0] in GRID)
