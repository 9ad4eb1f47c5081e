"""`python -m benchmarks [--only WORD] [--out FILE]`: grokscope against eager PyTorch, JAX and the machine's limit.

Everything that is compared is measured in turns within one run, several times, and the medians are compared.
"Machine throughput": steps per second of all runs that there is room for. Eager PyTorch and JAX run once with two
threads; grokscope runs once per core.
"""

import argparse
import importlib.util
import json
import platform
import re
import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.operations import operations
from benchmarks.programs import Program
from grokscope import RunSpec
from grokscope.engines.native_engine import instruction_level
from grokscope.outputs import write_text
from grokscope.sweeps.running import available_cores

DATA_FRACTIONS = [round(0.1 + 0.05 * step, 2) for step in range(17)]
BASE = RunSpec().updated({"optimizer.weight_decay": 5.0})


@dataclass
class Row:
    """One line of the table."""

    work: str
    grokscope: float  # steps per second of the machine
    eager: float | None = None
    jax: float | None = None
    of_peak: float | None = None
    target_eager: float | None = None
    target_jax: float | None = None
    target_peak: float | None = None
    unit: str = "steps/s"
    samples: dict[str, list[float]] = field(default_factory=dict)

    @property
    def met(self) -> bool:
        """Whether every target is reached."""
        pairs = [
            (self.eager and self.grokscope / self.eager, self.target_eager),
            (self.jax and self.grokscope / self.jax, self.target_jax),
            (self.of_peak, self.target_peak),
        ]
        return all(value >= target for value, target in pairs if value and target)


def interleaved(programs: dict[str, Program], steps: dict[str, int], rounds: int) -> dict[str, list[float]]:
    """Throughputs of all programs, taken in turns so that they see the same machine."""
    samples: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            samples[name].append(program.steps_per_second(steps[name]))
    return samples


def compare(work: str, spec: RunSpec, *, seconds: float = 1.5, rounds: int = 7, jax: bool = False) -> Row:
    """One spec in all programs, and the limit: operations in registers."""
    names = {"eager": 1, "grokscope": available_cores(), "peak": available_cores()}
    if jax and importlib.util.find_spec("jax"):
        names["jax"] = 1
    programs = {name: Program(name, spec, copies) for name, copies in names.items()}
    # As many steps as take about the given time.
    steps = {
        name: max(2, round(seconds * program.steps_per_second(3) / names[name])) for name, program in programs.items()
    }
    samples = interleaved(programs, steps, rounds)
    for program in programs.values():
        program.close()
    median = {name: statistics.median(values) for name, values in samples.items()}
    row = Row(work, median["grokscope"], median["eager"], median.get("jax"), samples=samples)
    useful = operations(spec) / 1e9
    ratios = [native * useful / limit for native, limit in zip(samples["grokscope"], samples["peak"], strict=True)]
    row.of_peak = statistics.median(ratios)
    return row


def default_run() -> Row:
    """α = .5."""
    row = compare("α = .5, wd 5, quadratic, MSE", BASE, rounds=9, jax=True)
    row.target_eager, row.target_jax, row.target_peak = 4, 2, 0.75
    return row


def figure_3() -> Row:
    """The time that a row of Figure 3 takes: one step at each data fraction."""
    rows = [
        compare("", BASE.updated({"task.data_fraction": alpha}), seconds=0.5, rounds=3, jax=True)
        for alpha in DATA_FRACTIONS
    ]

    def rate(values: list[float]) -> float:
        return len(values) / sum(1 / value for value in values)

    row = Row("the 17 data fractions of Figure 3, wd 5, total time", rate([row.grokscope for row in rows]))
    row.eager = rate([row.eager for row in rows if row.eager])
    if all(row.jax for row in rows):
        row.jax = rate([row.jax for row in rows if row.jax])
    row.samples = {
        str(alpha): [r.grokscope, r.eager or 0, r.jax or 0] for alpha, r in zip(DATA_FRACTIONS, rows, strict=True)
    }
    shares = [(each.of_peak or 0) / each.grokscope for each in rows]  # of the limit, by the time that each takes
    row.of_peak = sum(shares) / sum(1 / each.grokscope for each in rows)
    row.target_eager, row.target_jax = 5.5, 3
    return row


def whole_run(decay: float) -> Row:
    """2000 steps from the start, through the dying of neurons; the run of grokscope measures its curve as well."""
    spec = RunSpec().updated({"optimizer.weight_decay": decay})
    eager, native = Program("eager", spec, 1), Program("whole run", spec, available_cores())
    row = Row(f"whole run of 2000 steps, wd {decay:g}", native.steps_per_second(2000), eager.steps_per_second(1998))
    for program in (eager, native):
        program.close()
    row.target_eager = 8
    return row


def over_the_model(work: str, fields: dict[str, object], limit: float) -> Row:
    """By how many percent a step takes longer than its products would at the rate of the default setting."""
    spec = BASE.updated(fields)
    programs = {name: Program("grokscope", each, available_cores()) for name, each in (("own", spec), ("base", BASE))}
    steps = {name: max(2, round(program.steps_per_second(3) / available_cores())) for name, program in programs.items()}
    samples = interleaved(programs, steps, rounds=9)
    for program in programs.values():
        program.close()
    more = operations(spec) / operations(BASE)
    longer = [100 * (base / own / more - 1) for own, base in zip(samples["own"], samples["base"], strict=True)]
    words = f"{work}, longer than its products (limit {limit:g})"
    return Row(words, statistics.median(longer), unit="%", samples=samples)


@dataclass
class Variant:
    """Another kind of run, and what was aimed at."""

    work: str
    target_eager: float
    fields: dict[str, object]
    target_peak: float | None = None
    target_jax: float | None = None

    @property
    def spec(self) -> RunSpec:
        """The run."""
        return RunSpec().updated(self.fields)

    def measured(self) -> Row:
        """Against the others."""
        row = compare(self.work, self.spec, jax=self.target_jax is not None)
        row.target_eager, row.target_peak, row.target_jax = self.target_eager, self.target_peak, self.target_jax
        return row


def memory() -> Row:
    """Not a speed."""
    program = Program("memory", RunSpec(), 1)
    row = Row("memory of a native worker, default run (limit 150)", program.seconds_of(1)[0], unit="MB")
    program.close()
    return row


TRANSFORMER: dict[str, object] = {"model.kind": "transformer", "model.scaling": "sqrt-d"}  # d = 128, 4 heads
DEEP: dict[str, object] = {"model.depth": 3, "model.parameterization": "standard"}

VARIANTS: dict[str, Variant] = {
    "relu": Variant("ReLU", 4, {"model.activation": "relu"}),
    "cross-entropy": Variant("cross-entropy", 4, {"training.loss": "cross-entropy"}),
    "width-5000": Variant("N = 5000", 4, {"model.width": 5000}),
    "dropout": Variant("dropout .3", 3, {"model.dropout": 0.3}),
    **{
        f"batch-{size}-{norm}": Variant(
            f"mini-batch {size}, norm {norm}", 3, {"training.batch_size": size, "model.norm": norm}
        )
        for size in (64, 8)
        for norm in ("none", "batch", "layer")
    },
    "transformer": Variant("Transformer: 1 layer, d = 128, 4 heads", 4.5, TRANSFORMER, 0.75, target_jax=3),
    "transformer-cross-entropy": Variant(
        "Transformer, cross-entropy", 4.5, TRANSFORMER | {"training.loss": "cross-entropy"}, 0.75
    ),
    "transformer-two-layers": Variant("Transformer, 2 layers", 3, TRANSFORMER | {"model.layers": 2}, 0.75),
    "transformer-eight-heads": Variant("Transformer, 8 heads", 3, TRANSFORMER | {"model.heads": 8}, 0.75),
    "transformer-tied": Variant("Transformer, tied", 3, TRANSFORMER | {"model.tie_weights": True}, 0.75),
    "transformer-dropout": Variant("Transformer, dropout .05", 3, TRANSFORMER | {"model.dropout": 0.05}, 0.75),
    "transformer-layer-norm": Variant("Transformer, LayerNorm", 3, TRANSFORMER | {"model.norm": "layer"}, 0.75),
    "transformer-gelu": Variant("Transformer, GELU", 3, TRANSFORMER | {"model.activation": "gelu"}, 0.75),
    "three-layers": Variant("3-layer ReLU MLP, N = 500", 1.5, DEEP, 0.8),
    **{
        f"three-layers-{norm}-norm": Variant(
            f"3-layer ReLU MLP, mini-batch 64, norm {norm}", 5, DEEP | {"model.norm": norm, "training.batch_size": 64}
        )
        for norm in ("batch", "layer")
    },
    "three-layers-gelu": Variant(
        "3-layer GELU MLP, mini-batch 64", 5, DEEP | {"model.activation": "gelu", "training.batch_size": 64}
    ),
}
CASES: dict[str, Callable[[], Row]] = {
    "default": default_run,
    "figure-3": figure_3,
    **{name: variant.measured for name, variant in VARIANTS.items()},
    "width-5000-over-model": partial(over_the_model, "N = 5000", {"model.width": 5000}, 5),
    **{
        f"alpha-{alpha}-over-model": partial(over_the_model, f"α = {alpha}", {"task.data_fraction": alpha}, 15)
        for alpha in (0.7, 0.8, 0.9)
    },
    "memory": memory,
    "wd-15": partial(whole_run, 15.0),
    "wd-20": partial(whole_run, 20.0),
}


def machine() -> str:
    """The CPU as it names itself, and its cores. A name without a number stands for CPUs that differ much."""
    about = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    fields = dict(re.findall(r"^([\w ]+?)\s*: (.*)", about, re.MULTILINE))
    name = fields.get("model name") or platform.processor()
    if "cpu family" in fields and not re.search(r"\d", name):
        name += f" (family {fields['cpu family']}, model {fields['model']})"
    return f"{name}, {available_cores()} cores"


def results_file() -> Path:
    """Where the results of this kind of CPU are kept, such as results-amd-epyc-family-25-model-17-avx512.json."""
    cpu = machine().rpartition(",")[0]
    words = re.findall(r"[a-z]+|\d+", re.sub(r"\((R|TM|C)\)|@.*", "", cpu).lower())
    return Path("benchmarks", "-".join(["results", *words, instruction_level()]) + ".json")


def table_of(rows: list[Row]) -> Table:
    """What was measured, and whether it is what was aimed at."""
    table = Table(box=None, title=f"{machine()}, {instruction_level()}")
    for heading in ("work", "grokscope", "× eager", "× JAX", "of FMA peak", "aims", "met"):
        table.add_column(heading, justify="left" if heading == "work" else "right")
    for row in rows:
        aims = [f"{row.target_eager:g} × eager" if row.target_eager else ""]
        aims += [f"{row.target_jax:g} × JAX" if row.target_jax else ""]
        aims += [f"{row.target_peak:.0%} of peak" if row.target_peak else ""]
        table.add_row(
            row.work,
            f"{row.grokscope:.4g} {row.unit}",
            f"{row.grokscope / row.eager:.2f}" if row.eager else "",
            f"{row.grokscope / row.jax:.2f}" if row.jax else "",
            f"{row.of_peak:.0%}" if row.of_peak else "",
            ", ".join(filter(None, aims)),
            ("yes" if row.met else "NO") if any(aims) else "",
        )
    return table


def merged(before: dict[str, Any], now: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of before with those that were measured now in their places; only those if the machine is another."""
    if (before["machine"], before["level"]) != (now["machine"], now["level"]):
        return list(now["rows"])
    rows = {row["work"]: row for row in before["rows"]} | {row["work"]: row for row in now["rows"]}
    return list(rows.values())


def main() -> None:
    """Measure what was asked for, print it, and write it down."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", nargs="*", choices=list(CASES), default=list(CASES), help="only these; the file keeps the others"
    )
    parser.add_argument("--out", type=Path, default=results_file(), help="where to write the JSON")
    arguments = parser.parse_args()
    console = Console(width=130)
    rows = []
    for name in arguments.only:
        print(f"measuring {name} …", file=sys.stderr)  # noqa: T201
        rows.append(CASES[name]())
        console.print(table_of(rows[-1:]))
    console.print(table_of(rows))
    content = {"machine": machine(), "level": instruction_level(), "rows": [asdict(row) for row in rows]}
    if arguments.only != list(CASES) and arguments.out.exists():
        content["rows"] = merged(json.loads(arguments.out.read_text()), content)
    write_text(arguments.out, json.dumps(content, indent=1) + "\n")
    print(f"Wrote {arguments.out}", file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    main()
