"""Figure 3(b) alone: dropout."""

from grokscope.experiments.fig03 import DROPOUT, DROPOUT_CLAIMS, half

EXPERIMENT = half("fig03b", DROPOUT, "dropout", DROPOUT_CLAIMS)
