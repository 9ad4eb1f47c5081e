"""Figure 32: how many neurons a network needs to keep the rule, as networks become wider."""

import math

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure

from grokscope.experiments import fig01
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.pruned import LOWEST, by_ipr
from grokscope.experiments.scale import Scale
from grokscope.experiments.tables import from_rows
from grokscope.experiments.trends import power_law_exponent
from grokscope.plots import STYLE
from grokscope.plots.widths import draw_against_width
from grokscope.spec import RunSpec

WIDTHS = (500, 1000, 2000, 5000, 10000)
_FEWER_WIDTHS = WIDTHS[:3]
_SEEDS = 40


def specs(scale: Scale) -> list[RunSpec]:
    """One network for each width."""
    fields = {"optimizer.learning_rate": 0.005, "optimizer.weight_decay": 1.0}
    widths = WIDTHS if scale.full else _FEWER_WIDTHS
    return [fig01.BASE.updated({**fields, "model.width": width}) for width in widths]


def needs(scale: Scale) -> Needs:
    """All widths, with all seeds."""
    return Needs(networks=tuple(specs(scale)), seeds=_SEEDS)


def draw(evidence: Evidence) -> Drawing:
    """Neurons that are needed, and neurons that can go."""
    rows = []
    for seed in range(evidence.scale.seed_count(_SEEDS)):
        at_seed = evidence.at_seed(seed)
        for spec in specs(evidence.scale):
            result = at_seed.network(spec)
            width, prunable = result.spec.model.width, by_ipr(at_seed, spec)[LOWEST].prunable
            rows.append((result.run_id, seed, width, width - prunable, 100 * prunable / width))
    names = ("run_id", "seed", "width", "needed", "prunable_percent")
    data = from_rows(names, rows)
    widths = np.array(data["width"])
    with style.context(STYLE):
        figure = Figure(figsize=(9, 3.9))
        for axes, column, label in zip(
            figure.subplots(1, 2), names[3:], ("neurons needed for the rule", "% of neurons that can go"), strict=True
        ):
            draw_against_width(axes, widths, np.array(data[column]), label)
    return Drawing(figure, data)


def _needed(evidence: Evidence) -> tuple[list[int], list[float]]:
    """Widths, and how many neurons each network needs."""
    found = specs(evidence.scale)
    widths = [evidence.network(spec).spec.model.width for spec in found]
    pruned = [by_ipr(evidence, spec)[LOWEST].prunable for spec in found]
    return widths, [float(width - count) for width, count in zip(widths, pruned, strict=True)]


def _growth_of_share(evidence: Evidence) -> float:
    """By how many percent of the neurons more can go at the largest width than at the smallest."""
    widths, needed = _needed(evidence)
    if len(widths) < 2:
        return math.nan
    return 100 * (needed[0] / widths[0] - needed[-1] / widths[-1])


EXPERIMENT = Experiment(
    name="fig32",
    title="Neurons that can be pruned, against the width",
    caption="From the lowest IPR on, as many neurons are removed as can go with test accuracy at most 0.01 below that "
    "of the whole network (learning rate 0.005, weight decay 1, α = 0.5, ξ = 0.35). Mean over seeds; the band is the "
    "standard error.",
    needs=needs,
    draw=draw,
    claims=(
        Claim(
            "sublinear-need",
            "Appendix Q, Figure 32",
            "The number of neurons that a network needs for the rule grows more slowly than its width, so a larger "
            "part of a wider network can be pruned.",
            lambda scale: Needs(networks=tuple(specs(scale)), seeds=3),
            (
                Check("exponent of needed neurons in the width", lambda e: power_law_exponent(*_needed(e)), high=0.95),
                Check("prunable percent at the largest width, above the smallest", _growth_of_share, low=3),
            ),
        ),
    ),
)
