"""Many runs: which ones, where they run, and what they show together."""

from grokscope.sweep.events import Failed, Finished, Measured, Progress, Started
from grokscope.sweep.local import run_all

__all__ = ["Failed", "Finished", "Measured", "Progress", "Started", "run_all"]
