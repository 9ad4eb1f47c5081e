"""Figure 3(a) alone: weight decay."""

from grokscope.experiments.fig03 import WEIGHT_DECAY, WEIGHT_DECAY_CLAIMS, half

EXPERIMENT = half("fig03a", WEIGHT_DECAY, "weight decay", WEIGHT_DECAY_CLAIMS)
