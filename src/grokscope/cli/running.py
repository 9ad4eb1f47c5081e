"""What the commands share that train many networks."""

from grokscope.cli.options import note
from grokscope.errors import GrokscopeError
from grokscope.sweeps.running import Running
from grokscope.sweeps.sweep import Sweep

FEWER_WITH_REFINE = "With --refine it will be fewer runs: how many shows only while it runs."


def worker_count(text: str, engine: str) -> int:
    """How many processes, from what the command line says."""
    if text == "auto":
        return Running(engine=engine).processes
    if not text.isdecimal() or int(text) < 1:
        raise GrokscopeError(f"--workers = {text!r} is not allowed: must be auto or a number of at least 1")
    return int(text)


def record_sweep(sweep: Sweep, keep_both: str) -> None:
    """Write down which runs the sweep is made of; if its name meant others until now, say so."""
    if sweep.record():
        note(
            f"The store has a sweep {sweep.plan.name} with other settings. Its runs stay, and the name now means this "
            f"one; {keep_both}."
        )
