"""Many runs."""

from grokscope.sweep.local import Finished, Measured, run_all

__all__ = ["Finished", "Measured", "run_all"]
