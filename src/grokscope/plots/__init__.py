"""Pictures: of single runs, and of sweeps."""

from grokscope.plots.ablation import draw_ablations
from grokscope.plots.dynamics import draw_dynamics, draw_ledger
from grokscope.plots.files import STYLE, check_figure_path, save_figure
from grokscope.plots.phase_diagram import draw_phase_diagram
from grokscope.plots.runs import draw_runs, settings_line

__all__ = [
    "STYLE",
    "check_figure_path",
    "draw_ablations",
    "draw_dynamics",
    "draw_ledger",
    "draw_phase_diagram",
    "draw_runs",
    "save_figure",
    "settings_line",
]
