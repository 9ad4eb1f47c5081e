"""The paper's figures, one module each, and the sweeps behind them by name."""

from collections.abc import Callable

from grokscope.experiments import fig03
from grokscope.sweep.plan import Plan

SWEEPS: dict[str, Callable[[], Plan]] = {"fig3a": fig03.weight_decay, "fig3b": fig03.dropout}
