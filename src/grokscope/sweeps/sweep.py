"""A plan on a store: what is left of it to do, doing it, and what came out.

sweep = Sweep(plan, Store())
sweep.record()
for event in sweep.run(Running()):
    ...
sweep.diagram()
"""

import json
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from grokscope.spec import RunSpec
from grokscope.store import CellOutcome, Store
from grokscope.sweeps.diagram import PhaseDiagram, assemble, wanted_places
from grokscope.sweeps.dispatch import run_all
from grokscope.sweeps.messages import Expected, Progress
from grokscope.sweeps.plan import Plan
from grokscope.sweeps.recorded import NOTHING_RECORDED, Recorded, completed
from grokscope.sweeps.running import Running
from grokscope.sweeps.stopping import stop_on_request
from grokscope.sweeps.tracking import track_stored


@dataclass(frozen=True)
class Standing:
    """How far a sweep is."""

    cells: int
    missing: int
    failed: int
    complete: bool  # nothing is left to do; of a refined sweep the missing cells are inferred


class Sweep:
    """The runs of a plan on a store. Asks for them by their ids: the plan's name may come to mean another sweep.

    What tables of cells say about runs that the store lacks is as good as the runs: `recorded`.
    """

    def __init__(
        self,
        plan: Plan,
        store: Store,
        *,
        specs: Sequence[RunSpec] | None = None,
        refined: bool = False,
        recorded: Recorded = NOTHING_RECORDED,
    ) -> None:
        self.plan, self.store, self.refined, self.recorded = plan, store, refined, recorded
        self.specs = list(plan.specs()) if specs is None else list(specs)
        self._run_ids = [spec.run_id for spec in self.specs]

    def takes_a_name(self) -> bool:
        """Whether the store has a sweep of this name with other settings."""
        known = self.store.sweeps() if self.store.is_there() else []
        before = next((sweep for sweep in known if sweep.name == self.plan.name), None)
        return before is not None and before.definition != json.loads(json.dumps(self.plan.to_dict()))

    def record(self) -> None:
        """Write down which runs the sweep is made of."""
        self.store.make()
        self.store.record_sweep(self.plan.name, self.plan.to_dict(), self._run_ids, refined=self.refined)

    def run(
        self, running: Running, *, limit: int | None = None, should_stop: Callable[[], bool] = lambda: False
    ) -> Generator[Progress | Expected, None, None]:
        """Do the runs that are missing, or of a refined sweep those that are wanted, at most `limit`."""
        announced: list[Expected] = []
        batches = self._batches(limit, announced, running)
        events = run_all(self.specs, self.store.path, running, batches=batches, should_stop=should_stop)
        with closing(events):
            for event in events:
                while announced:
                    yield announced.pop(0)
                yield event

    def _batches(self, limit: int | None, announced: list[Expected], running: Running) -> Iterator[Sequence[int]]:
        left = self.plan.size if limit is None else limit
        wanted = self._wanted() if self.refined else self._to_do(running)
        while wanted and left:
            chosen = wanted[:left]
            left -= len(chosen)
            announced.append(Expected(tuple(chosen)))
            yield chosen
            wanted = self._wanted() if self.refined else []

    def _wanted(self) -> list[int]:
        return wanted_places(self.plan, self.outcomes())

    def _to_do(self, running: Running) -> list[int]:
        """The places without a run, and those whose run was stored without weights that are wanted; each run once."""
        bare = running.lacking(self.store, self.specs) if running.weights else set()
        places = {
            cell.run_id: cell.place
            for cell in reversed(self.outcomes())
            if cell.outcome is None or (cell.outcome != "failed" and cell.run_id in bare)
        }
        return sorted(places.values())

    def carry_out(self, running: Running, *, limit: int | None = None, progress: bool = True) -> bool:
        """Do what is missing and show how it goes; whether it was interrupted, with nothing lost."""
        with stop_on_request() as should_stop:
            # Closed here: the traceback of an exception would keep it, and its workers, alive in a notebook.
            with closing(self.run(running, limit=limit, should_stop=should_stop)) as events:
                if progress:
                    self._show(events)
                else:
                    deque(events, maxlen=0)
            if not should_stop():
                track_stored(self.store, self._run_ids, running.track)
            return should_stop()

    def _show(self, events: Iterable[Progress | Expected]) -> None:
        from grokscope.sweeps.display import SweepDisplay  # with rich, which worker processes do not need

        with SweepDisplay(self.plan, self.specs, self.outcomes()) as display:
            for event in events:
                display.update(event)

    def outcomes(self) -> list[CellOutcome]:
        """What became of every cell, in the order of the places."""
        return completed(self.store.outcomes(self._run_ids), self.recorded)

    def standing(self) -> Standing:
        """How far it is now."""
        cells = self.outcomes()
        missing, failed = (sum(cell.outcome == outcome for cell in cells) for outcome in (None, "failed"))
        complete = not wanted_places(self.plan, cells) if self.refined else missing == 0
        return Standing(len(cells), missing, failed, complete)

    def diagram(self) -> PhaseDiagram:
        """The phase diagram as it is now."""
        return assemble(self.plan, self.outcomes(), refined=self.refined)
