"""Figure 3(a) alone: weight decay."""

from grokscope.experiments.fig03 import WEIGHT_DECAY, half

EXPERIMENT = half("fig03a", WEIGHT_DECAY, "weight decay")
