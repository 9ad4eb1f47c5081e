"""Many runs: which ones, where they run, and what they show together."""

from grokscope.sweeps.dispatch import run_all
from grokscope.sweeps.messages import Failed, Finished, Measured, Progress, Started, StillWaiting, Waiting
from grokscope.sweeps.running import Running

__all__ = ["Failed", "Finished", "Measured", "Progress", "Running", "Started", "StillWaiting", "Waiting", "run_all"]
