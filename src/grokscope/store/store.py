"""Runs on disk: an SQLite index and one safetensors file per run.

    store = Store(Path("grokscope-runs"))
    store.save(result)
    store.load(result.run_id)

The index knows the runs and their outcomes, what people say about them, the sweeps, the leases, the checkpoints and the
failures. The file of a run holds its curve, the spectra of its neurons and, if they were kept, its weights. A file is
complete before the index names it. It is never changed, and is removed only after the index no longer names it. So a
crash at any moment leaves the store as it was either before or after a save.

A file has a checksum, the id of its run and what the index says about the run; a row of the index has a seal. What is
read is checked against them. What is damaged is left out with a warning, or is an error where it was asked for by name.

    grokscope-runs/
      index.sqlite
      runs/3f/3f0c…-7d1e….safetensors
      checkpoints/3f0c…-51aa….safetensors
      sweeps/0b7d….json
      remarks/3f0c….json
"""

from html import escape

from grokscope.store.remarks import RemarkedRuns
from grokscope.store.sweeps import Sweeps
from grokscope.store.unfinished import Unfinished
from grokscope.tables import html_table

_SHOWN_RUNS = 10


class Store(Unfinished, RemarkedRuns, Sweeps):
    """A directory of runs. Any number of processes may open it.

    What it can do is written in five parts: `opened.py` opens it, `runs.py` has the runs, `remarks.py` their names,
    tags and notes, `unfinished.py` leases, checkpoints and failures, `sweeps.py` sweeps and cells.
    """

    def _repr_html_(self) -> str:
        """For a notebook: the newest runs, in words."""
        words = f"<p>{escape(repr(self).strip('<>'))}</p>"
        if not self.is_there():
            return words
        runs = self.runs(limit=_SHOWN_RUNS)[::-1]
        columns = {
            "run": [run.run_id for run in runs],
            "phase": [run.phase.label if run.phase else run.status for run in runs],
            "test": [
                f"{value:.1%}" if (value := (run.final or {}).get("test_accuracy")) is not None else "–" for run in runs
            ],
            "name": [run.name or "" for run in runs],
            "tags": [", ".join(run.tags) for run in runs],
            "what": [repr(run.spec).partition(": ")[2].rstrip(">") for run in runs],
        }
        return words + html_table(columns)
