"""How runs are done: in how many processes, by which engine, on which device.

>>> Running(workers=2).processes
2
"""

from dataclasses import dataclass

from grokscope.engines import resolve_engine
from grokscope.errors import GrokscopeError
from grokscope.spec import RunSpec
from grokscope.sweeps.running import available_cores, sweep_engine

AUTO = "auto"


@dataclass(frozen=True)
class Running:
    """How to run; none of it changes what a run computes."""

    workers: int | str = AUTO  # processes; auto: one for each core, or one for a GPU
    engine: str = AUTO  # auto: the fastest that can do the run
    device: str = "cpu"

    @property
    def processes(self) -> int:
        """How many processes there will be on this machine."""
        text = str(self.workers)
        if text == AUTO:
            return 1 if self.engine_used == "stacked" else available_cores()
        if not text.isdecimal() or int(text) < 1:
            raise GrokscopeError(f"--workers = {text!r} is not allowed: must be auto or a number of at least 1")
        return int(text)

    @property
    def engine_used(self) -> str:
        """The engine for many runs on this device."""
        return sweep_engine(self.engine, self.device)

    def check(self, spec: RunSpec) -> None:
        """Refuse a run that the engine or the device cannot do."""
        resolve_engine(self.engine_used, self.device, spec)
