"""Pictures: of single runs, and of sweeps."""

from grokscope.plots.files import STYLE, check_figure_path, save_figure
from grokscope.plots.phase_diagram import draw_phase_diagram
from grokscope.plots.pruning import draw_pruning
from grokscope.plots.runs import draw_runs, settings_line

__all__ = [
    "STYLE",
    "check_figure_path",
    "draw_phase_diagram",
    "draw_pruning",
    "draw_runs",
    "save_figure",
    "settings_line",
]
