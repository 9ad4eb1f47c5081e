"""`python -m benchmarks.cluster`: what a run costs on a cluster beside its training, and what larger ones will do.

Overhead: runs that wait until they have taken their time, on more workers than there are cores. Efficiency: runs that
compute, on one worker and on two. Projection: a simulation of `reproduce all --scale paper`, from the work as it is
measured here on some steps of some runs. Writes benchmarks/cluster.json, and the table of docs/scaling.md.
"""

import argparse
import json
import os
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import chdir, closing
from pathlib import Path
from typing import Any

from grokscope import RunSpec
from grokscope.cluster import cluster_at
from grokscope.errors import GrokscopeError
from grokscope.experiments.catalogue import claims_about, experiments_called
from grokscope.experiments.gathering import plan_work
from grokscope.experiments.scale import Amount
from grokscope.outputs import write_text
from grokscope.sweeps import Finished, Running, run_all
from grokscope.sweeps.estimate import estimated_durations, makespan, relative_cost
from grokscope.sweeps.running import available_cores

RESULTS, DOCUMENT = Path("benchmarks/cluster.json"), Path("docs/scaling.md")
ROUNDS = 3
WAITING = """
import time
import grokscope as gs

class Waiting(gs.Measurement):
    columns = ("waited",)

    def __init__(self):
        self.began = time.monotonic()  # a run has an instance of its own

    def measure(self, moment):
        ends = self.began + {seconds} * moment.step / 5
        time.sleep(max(0, ends - time.monotonic()))
        return {{"waited": {seconds}}}
"""
SMALL = RunSpec().updated({"task.modulus": 11, "model.width": 24, "training.steps": 5})
COMPUTING = RunSpec().updated({"task.modulus": 43, "model.width": 200, "training.steps": 600})

# What is assumed of a GPU, where none was measured: single-precision peak of an NVIDIA A100, and the part of it that
# stacked runs reach.
GPU_FLOPS, GPU_REACHED = 19.5e12, 0.4
CORE_FLOPS = 1e9 * json.loads(Path("benchmarks/scaling.json").read_text(encoding="utf-8"))["reached"]


def seconds_on(workers: int, specs: Sequence[RunSpec]) -> tuple[float, float]:
    """What runs take once the workers have done some: on the clock, and of the coordinator's processor."""
    ended: list[float] = []
    with tempfile.TemporaryDirectory() as store, cluster_at(f"local:{workers}") as cluster:
        assert cluster is not None
        cluster.connect()
        while len(cluster.workers) < workers:
            cluster.look()
            time.sleep(0.05)
        warm = [spec.updated({"training.seed": 10_000 + place}) for place, spec in enumerate(specs[: 2 * workers])]
        running = Running(cluster=cluster)
        for chosen in (warm, specs):
            started, used = time.perf_counter(), time.process_time()
            with closing(run_all(chosen, Path(store), running)) as events:
                ended = [time.perf_counter() for event in events if isinstance(event, Finished)]
            if len(ended) != len(chosen):
                raise GrokscopeError(f"{len(chosen) - len(ended)} of {len(chosen)} runs failed")
    return ended[-1] - started, time.process_time() - used


def overhead(workers: int, seconds: float, count: int) -> dict[str, float]:
    """What runs take that end when so long is over, beyond that."""
    with tempfile.TemporaryDirectory() as directory, chdir(directory):
        Path("waiting.py").write_text(WAITING.format(seconds=seconds), encoding="utf-8")
        base = SMALL.updated({"training.measurements": ["waiting.py:Waiting"]})
        specs = [base.updated({"training.seed": seed}) for seed in range(count)]
        took, used = zip(*(seconds_on(workers, specs) for _ in range(ROUNDS)), strict=True)
    seconds_taken = statistics.median(took)
    return {
        "workers": workers,
        "runs": count,
        "seconds_a_run": seconds,
        "seconds": seconds_taken,
        "milliseconds_a_run": 1000 * (seconds_taken - count * seconds / workers) / count,
        "coordinator_milliseconds_a_run": 1000 * statistics.median(used) / count,
    }


def efficiency(count: int) -> dict[str, float]:
    """The speed of two workers, as a part of twice that of one."""
    specs = [COMPUTING.updated({"training.seed": seed}) for seed in range(count)]
    one, two = (statistics.median(seconds_on(workers, specs)[0] for _ in range(ROUNDS)) for workers in (1, 2))
    return {"runs": count, "one_worker_seconds": one, "two_workers_seconds": two, "efficiency": one / two / 2}


def paper_work() -> list[list[float]]:
    """Seconds of each run of `reproduce all --scale paper` on one core, sweep by sweep: one ends before the next."""
    figures = experiments_called(["all"], all_allowed=True)
    with tempfile.TemporaryDirectory() as empty:
        work = plan_work(figures, claims_about(figures), Amount("paper"), Running(workers=1), Path(empty))
    sweeps, planned = [list(work.specs), *(list(plan.specs()) for plan in work.plans)], set[str]()
    durations = []
    started, used = time.perf_counter(), time.process_time()
    for specs in sweeps:
        new = {spec.run_id: spec for spec in specs if spec.run_id not in planned and relative_cost(spec)}
        planned |= set(new)
        durations.append(estimated_durations(list(new.values()), "auto"))
    # On a busy machine a step takes longer than the processor is used for it, and others pay for that.
    share = min(1.0, (time.process_time() - used) / (time.perf_counter() - started))
    return [[seconds * share for seconds in sweep] for sweep in durations]


def projection(durations: list[list[float]], cores: int, milliseconds: float) -> dict[str, float]:
    """How long so many workers take that are as fast as a core here; each run takes the coordinator's time too."""
    seconds = sum(max(makespan(sweep, cores), len(sweep) * milliseconds / 1000) for sweep in durations if sweep)
    return {"workers": cores, "hours": seconds / 3600, "busy": sum(map(sum, durations)) / cores / seconds}


def main() -> None:
    """Measure, project, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs: to try it")
    quick = parser.parse_args().quick
    load = os.getloadavg()[0]  # of others: numbers from a busy machine are worse than those of an idle one
    waiting = overhead(8, 0.2, 100 if quick else 800)
    nothing = overhead(2, 0.0, 50 if quick else 400)
    computing = efficiency(8 if quick else 40)
    durations = paper_work()
    cost = nothing["coordinator_milliseconds_a_run"]
    gpu = GPU_FLOPS * GPU_REACHED / CORE_FLOPS
    projections = {
        "2 cores": projection(durations, 2, cost),
        "64 cores": projection(durations, 64, cost),
        "1,000 cores": projection(durations, 1000, cost),
        # A stack keeps a GPU busy, so eight of them are like as many cores as they are as fast as.
        "8 GPUs": projection(durations, round(8 * gpu), cost),
    }
    results = {
        "load": max(load, os.getloadavg()[0]),
        "cores": available_cores(),
        "overhead": waiting,
        "coordinator": nothing,
        "efficiency": computing,
        "paper": {
            "runs": sum(map(len, durations)),
            "sweeps": len(durations),
            "core_hours": sum(map(sum, durations)) / 3600,
            "longest_run_hours": max(max(sweep) for sweep in durations if sweep) / 3600,
        },
        "projection": projections,
        "assumed": {"gpu_flops": GPU_FLOPS, "gpu_reached": GPU_REACHED, "cores_a_gpu": gpu},
    }
    write_text(RESULTS, json.dumps(results, indent=1) + "\n")
    document(results)


def document(results: dict[str, Any]) -> None:
    """Replace what stands between the marks."""
    waiting, idle, two = results["overhead"], results["coordinator"], results["efficiency"]
    work = results["paper"]
    rows = [
        ("load of the machine while it was measured", f"{results['load']:.1f} processes on {results['cores']} cores"),
        (
            f"overhead of a run of {waiting['seconds_a_run']} s on {waiting['workers']} workers",
            f"{waiting['milliseconds_a_run']:.1f} ms",
        ),
        ("a run of no length on 2 workers", f"{idle['milliseconds_a_run']:.1f} ms"),
        ("processor time of the coordinator for it", f"{idle['coordinator_milliseconds_a_run']:.1f} ms"),
        ("efficiency of 2 workers", f"{two['efficiency']:.0%}"),
        (
            "`reproduce all --scale paper`",
            f"{work['runs']:,} runs, {work['core_hours']:,.0f} core hours, "
            f"the longest run {work['longest_run_hours']:.1f} h",
        ),
        *(
            (f"projected on {name}", f"{each['hours']:,.1f} h, workers busy for {each['busy']:.0%} of it")
            for name, each in results["projection"].items()
        ),
    ]
    table = "\n".join(["| | |", "|---|---|", *(f"| {what} | {value} |" for what, value in rows), ""])
    marked = re.compile(r"(<!-- results -->\n).*?(<!-- end of results -->)", re.DOTALL)
    text = DOCUMENT.read_text(encoding="utf-8")
    write_text(DOCUMENT, marked.sub(lambda match: match[1] + table + match[2], text))


if __name__ == "__main__":
    main()
