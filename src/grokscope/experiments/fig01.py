"""Figure 1: training curves in three phases, with the IPR histograms that explain them (Figure 4a)."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from grokscope.plots import draw_runs
from grokscope.result import RunResult
from grokscope.spec import RunSpec

WEIGHT_DECAYS = (0.0, 5.0, 15.0)


def specs() -> list[RunSpec]:
    """The default setting at α = .5, ξ = .35, with three weight decays."""
    base = RunSpec().updated({"task.data_fraction": 0.5, "task.corruption": 0.35})
    return [base.updated({"optimizer.weight_decay": decay}) for decay in WEIGHT_DECAYS]


def draw(results: Sequence[RunResult]) -> Figure:
    """Curves above, IPR histograms below."""
    return draw_runs(results, [f"weight decay {result.spec.optimizer.weight_decay:g}" for result in results])
