"""What the commands share that train many networks."""

from grokscope.errors import GrokscopeError, quoted
from grokscope.sweeps.plan import whole_number
from grokscope.sweeps.running import Running

FEWER_WITH_REFINE = "With --refine it will be fewer runs: how many shows only while it runs."


def worker_count(text: str, engine: str) -> int:
    """How many processes, from what the command line says."""
    if text == "auto":
        return Running(engine=engine).processes
    if not (count := whole_number(text)):
        raise GrokscopeError(f"--workers = {quoted(text)} is not allowed: must be auto or a number of at least 1")
    return count
