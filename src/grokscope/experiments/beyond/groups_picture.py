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
    """A row for each diagram, and a last row with the IPR of the neurons of each network."""
    columns = max(len(networks), *(len(diagram.panels) for diagram in diagrams.values()))
    with style.context(STYLE):
        figure = Figure(figsize=(1.6 + 2.9 * columns, 1.2 + 2.9 * (len(diagrams) + 1)))
        grid = figure.subplots(len(diagrams) + 1, columns, squeeze=False)
        for axes in grid.flat:
            axes.set_visible(False)
        for row, (name, diagram) in zip(grid[:-1], diagrams.items(), strict=True):
            for axes, panel in zip(row, diagram.panels, strict=False):
                axes.set_visible(True)
                draw_phases(axes, panel, diagram)
                label_ticks(axes, diagram)
                axes.set_title(f"{name}, {panel_title(panel)}", fontsize="small")
                axes.set_xlabel(axis_label(diagram.columns))
            if diagram.rows:
                row[0].set_ylabel(axis_label(diagram.rows))
        for axes, (name, network) in zip(grid[-1], networks.items(), strict=False):
            _draw_ipr(axes, network, noise[name], name)
        grid[-1, 0].set_ylabel("neurons")
        figure.legend(handles=phase_handles(*diagrams.values()), loc="outside lower center", ncols=4)
    return figure


def _draw_ipr(axes: Axes, network: RunResult, noise: float, name: str) -> None:
    axes.set_visible(True)
    axes.hist(live_ipr(network.neurons), bins=_BINS, range=(0, 1), color=SKY, edgecolor=BAR_EDGE, linewidth=0.5)
    axes.axvline(noise, color="0.3", linestyle=":")
    axes.set_title(name, fontsize="small")
    axes.set_xlabel("IPR over representations")
