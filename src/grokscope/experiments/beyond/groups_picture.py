"""Pictures of phase diagrams for several groups."""

from collections.abc import Mapping

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grokscope.plots.files import STYLE
from grokscope.plots.phase_diagram import axis_label, draw_phases, label_ticks, panel_title, phase_handles
from grokscope.plots.runs import draw_ipr_histogram
from grokscope.result import RunResult
from grokscope.sweeps.diagram import PhaseDiagram


def draw_groups(
    diagrams: Mapping[str, PhaseDiagram], networks: Mapping[str, RunResult], noise: Mapping[str, float]
) -> Figure:
    """A row for each diagram, and at the end of the last one the IPR of the neurons of each network."""
    *others, last = (len(diagram.panels) for diagram in diagrams.values())
    columns = max(*others, last + len(networks))
    with style.context(STYLE):
        figure = Figure(figsize=(1.6 + 2.9 * columns, 1.1 + 3.1 * len(diagrams)))
        grid = figure.subplots(len(diagrams), columns, squeeze=False)
        for row, (name, diagram) in zip(grid, diagrams.items(), strict=True):
            for axes, panel in zip(row, diagram.panels, strict=False):
                draw_phases(axes, panel, diagram)
                label_ticks(axes, diagram)
                axes.set_title(panel_title(panel))
                axes.set_xlabel(axis_label(diagram.columns))
            if diagram.rows:
                row[0].set_ylabel(f"{name}\n{axis_label(diagram.rows)}")
        for axes, (name, network) in zip(grid[-1, last:], networks.items(), strict=False):
            _draw_ipr(axes, network, noise[name])
        for axes in grid.flat:
            if not axes.has_data():
                axes.remove()
        figure.legend(handles=phase_handles(*diagrams.values()), loc="outside lower center", ncols=8)
    return figure


def _draw_ipr(axes: Axes, network: RunResult, noise: float) -> None:
    draw_ipr_histogram(axes, network)
    axes.axvline(noise, color="0.3", linestyle=":")
    task, decay = network.spec.task, network.spec.optimizer.weight_decay
    axes.set_title(f"{task.group}, weight decay {decay:g}\nα = {task.data_fraction:g}, ξ = {task.corruption:g}")
    axes.set(xlabel="IPR over representations", ylabel="neurons")
