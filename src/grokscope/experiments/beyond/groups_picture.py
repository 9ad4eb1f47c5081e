"""Pictures of phase diagrams for several groups."""

from collections.abc import Mapping

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grokscope.experiments.quantities.distributions import live_ipr
from grokscope.plots.files import STYLE
from grokscope.plots.palette import BAR_EDGE, SKY
from grokscope.plots.phase_diagram import axis_label, draw_phases, label_ticks, panel_title, phase_handles
from grokscope.result import RunResult
from grokscope.sweeps.diagram import PhaseDiagram

_BINS = 25


def draw_groups(
    diagrams: Mapping[str, PhaseDiagram], networks: Mapping[str, RunResult], noise: Mapping[str, float]
) -> Figure:
    """A row for each diagram; in its last column the IPR of the neurons of a network, if there is one."""
    panels = max(len(diagram.panels) for diagram in diagrams.values())
    with style.context(STYLE):
        figure = Figure(figsize=(1.6 + 2.9 * (panels + 1), 1.2 + 2.9 * len(diagrams)))
        grid = figure.subplots(len(diagrams), panels + 1, squeeze=False)
        for row, (name, diagram) in zip(grid, diagrams.items(), strict=True):
            for axes in row[len(diagram.panels) : -1]:
                axes.set_visible(False)
            for axes, panel in zip(row[:-1], diagram.panels, strict=False):
                draw_phases(axes, panel)
                label_ticks(axes, diagram.columns, diagram.rows)
                axes.set_title(f"{name}, {panel_title(panel)}", fontsize="small")
            if diagram.rows:
                row[0].set_ylabel(axis_label(diagram.rows))
            if name in networks:
                _draw_ipr(row[-1], networks[name], noise[name], name)
            else:
                row[-1].set_visible(False)
        for axes in grid[-1, :-1]:
            axes.set_xlabel(axis_label(next(iter(diagrams.values())).columns))
        figure.legend(handles=phase_handles(*diagrams.values()), loc="outside lower center", ncols=7)
    return figure


def _draw_ipr(axes: Axes, network: RunResult, noise: float, name: str) -> None:
    axes.hist(live_ipr(network.neurons), bins=_BINS, range=(0, 1), color=SKY, edgecolor=BAR_EDGE, linewidth=0.5)
    axes.axvline(noise, color="0.3", linestyle=":")
    axes.set_title(f"{name}, neurons", fontsize="small")
    axes.set_xlabel("IPR over representations")
