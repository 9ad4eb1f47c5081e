"""`python -m benchmarks.scaling`: how the cost of a step grows with p, N and α, beside a model of it.

Writes docs/images/scaling.png and benchmarks/scaling.json. One run on one core.
"""

import json
from pathlib import Path

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from benchmarks.engine import EngineProgram
from benchmarks.operations import over_other_pairs, over_training_pairs
from grokscope import RunSpec
from grokscope.engines.native_engine import instruction_level, native_module
from grokscope.outputs import write_file, write_text
from grokscope.plots import STYLE, figure_bytes

BASE = RunSpec().updated({"optimizer.weight_decay": 5.0})
AXES: dict[str, tuple[str, list[float]]] = {
    "p": ("task.modulus", [23, 31, 47, 59, 71, 83, 97, 113, 127, 149, 181]),
    "N": ("model.width", [125, 250, 500, 1000, 2000, 5000, 10000]),
    "α": ("task.data_fraction", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]),
}


def milliseconds(spec: RunSpec) -> float:
    """The best of several steps: what the machine can do when nothing disturbs it."""
    program = EngineProgram(spec)
    once = program.seconds_of(2) / 2
    return 1000 * min(program.seconds_of(1) for _ in range(max(5, round(1.5 / once))))


def draw(rows: dict[str, list[dict[str, float]]]) -> Figure:
    """Measured points and the model's lines."""
    with plt.style.context(STYLE):
        figure = Figure(figsize=(12, 3.8))
        for axes, (name, points) in zip(figure.subplots(1, 3), rows.items(), strict=True):
            values = [point["value"] for point in points]
            axes.plot(values, [point["direct"] for point in points], "--", color="0.45", label="model: training pairs")
            axes.plot(
                values,
                [point["complement"] for point in points],
                ":",
                color="#D55E00",
                label="model: full grid − others",
            )
            axes.plot(values, [point["measured"] for point in points], "o", color="#0072B2", label="measured")
            axes.set(xlabel=name, ylabel="ms a step, one core")
            if name != "α":
                axes.set(xscale="log", yscale="log")
                shown = values[::3]
                axes.set_xticks(shown, [f"{value:g}" for value in shown])
                axes.xaxis.set_minor_formatter("")
            axes.set_ylim(bottom=0 if name == "α" else None, top=2 * max(point["measured"] for point in points))
        figure.axes[0].legend()
    return figure


def main() -> None:
    """Measure, draw, write."""
    kernel = native_module()
    assert kernel is not None
    peak = max(kernel.fma_peak(instruction_level(), 0.2) for _ in range(5))
    # One number is fitted: which part of the peak the products reach, at the default setting.
    reached = over_training_pairs(BASE) / milliseconds(BASE) / 1e6
    rows: dict[str, list[dict[str, float]]] = {}
    for name, (path, values) in AXES.items():
        rows[name] = []
        for value in values:
            spec = BASE.updated({path: value})
            direct, complement = (work(spec) / reached / 1e6 for work in (over_training_pairs, over_other_pairs))
            rows[name].append(
                {"value": value, "measured": milliseconds(spec), "direct": direct, "complement": complement}
            )
    write_file(Path("docs/images/scaling.png"), figure_bytes(draw(rows), dots_per_inch=110))
    content = {"level": instruction_level(), "peak": peak, "reached": reached, "rows": rows}
    write_text(Path("benchmarks/scaling.json"), json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
