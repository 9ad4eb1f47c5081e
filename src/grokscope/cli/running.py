"""What the commands share that train many networks."""

from collections.abc import Sequence

from grokscope.cli.options import note
from grokscope.errors import GrokscopeError
from grokscope.spec import RunSpec
from grokscope.store import Store
from grokscope.sweeps.plan import Plan
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


def record_plan(store: Store, plan: Plan, specs: Sequence[RunSpec], *, refined: bool, keep_both: str) -> None:
    """The same for a plan whose runs are known."""
    record_sweep(Sweep(plan, store, specs=specs, refined=refined), keep_both)


def run_plan(
    store: Store, plan: Plan, specs: Sequence[RunSpec], workers: int, engine: str, device: str, *, refined: bool
) -> bool:
    """Do the runs that are missing, or of a refined sweep those that are wanted; whether it was asked to stop."""
    running = Running(workers=workers, engine=engine, device=device)
    return Sweep(plan, store, specs=specs, refined=refined).carry_out(running)
