"""Figure 3(b) alone: dropout."""

from grokscope.experiments.fig03 import DROPOUT, half

EXPERIMENT = half("fig03b", DROPOUT, "dropout")
