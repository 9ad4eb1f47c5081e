"""Curves that are drawn: measured often where much happens, with several seeds."""

from grokscope.spec import RunSpec

SEEDS = 3


def densely(spec: RunSpec) -> RunSpec:
    """The same run measured at log-spaced steps too: most happens within the first hundred."""
    return spec.updated({"training.measure_per_decade": 20})
