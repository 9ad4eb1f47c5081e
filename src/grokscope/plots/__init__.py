"""Pictures: of single runs, and of sweeps."""

from grokscope.plots.ablation import draw_ablations
from grokscope.plots.audits import draw_audit, draw_audit_map
from grokscope.plots.comparison import draw_phase_diagrams
from grokscope.plots.dynamics import draw_dynamics, draw_ledger
from grokscope.plots.files import STYLE, check_figure_path, figure_bytes, save_figure
from grokscope.plots.logits import draw_logits
from grokscope.plots.phase_diagram import draw_phase_diagram
from grokscope.plots.pruning import draw_pruning
from grokscope.plots.runs import draw_curves, draw_row, draw_runs, settings_line
from grokscope.plots.spectrum import draw_spectrum

__all__ = [
    "STYLE",
    "check_figure_path",
    "draw_ablations",
    "draw_audit",
    "draw_audit_map",
    "draw_curves",
    "draw_dynamics",
    "draw_ledger",
    "draw_logits",
    "draw_phase_diagram",
    "draw_phase_diagrams",
    "draw_pruning",
    "draw_row",
    "draw_runs",
    "draw_spectrum",
    "figure_bytes",
    "save_figure",
    "settings_line",
]
