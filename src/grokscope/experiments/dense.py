"""Curves that are drawn: measured often where much happens, with several seeds."""

from grokscope.spec import RunSpec

SEEDS = 3
BANDS = "Accuracies are medians over seeds, in a band from the lowest to the highest."  # for captions


def densely(spec: RunSpec) -> RunSpec:
    """The same run measured at log-spaced steps too: most happens within the first hundred."""
    return spec.updated({"training.measure_per_decade": 20})
