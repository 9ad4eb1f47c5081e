"""Many runs: which ones, where they run, and what they show together."""

from grokscope.sweep.local import Failed, Finished, Measured, Started, run_all

__all__ = ["Failed", "Finished", "Measured", "Started", "run_all"]
