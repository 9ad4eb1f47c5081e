"""A run as a moving picture: its accuracies, some weights, the spectra of its neurons and their IPR, frame by frame."""

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from PIL import Image

from grokscope.arrays import FloatArray, Int64Array
from grokscope.measure import NeuronWaves, neuron_waves, phases_along
from grokscope.models import Weights
from grokscope.plots.files import STYLE
from grokscope.plots.palette import ACCURACIES, BAR_EDGE, BLUE, INPUT_COLOR
from grokscope.plots.runs import ipr_limit, settings_line
from grokscope.result import RunResult

_INCHES = 7.2  # the width of a frame; its pixels decide how finely it is drawn, not how much is on it
_ROWS = 64  # of the picture of all spectra, at most: pixels that flicker are hard to read, and make a large file
_IPR_BINS = 25
_SHOWN = 3  # neurons whose weights are drawn


def draw_frames(result: RunResult, weights_at: Mapping[int, Weights], size: tuple[int, int]) -> Iterator[Image.Image]:
    """One picture of so many pixels for each of these steps, which are rows of the curve."""
    width, height = size
    with style.context([STYLE, {"font.size": 8, "axes.titlesize": 9, "legend.fontsize": 7}]):
        figure = Figure(figsize=(_INCHES, _INCHES * height / width), dpi=width / _INCHES)
        waves = {step: neuron_waves(result.spec.model, own, result.spec.task) for step, own in weights_at.items()}
        drawing = _Drawing(figure, result, list(waves.values()))
        for number, (step, own) in enumerate(waves.items()):
            drawing.show(step, own)
            picture = _picture(figure)
            if number == 0:
                figure.set_layout_engine("none")  # else the panels would move with the width of a number
            yield picture.resize(size)  # a pixel may be missing by rounding


def _picture(figure: Figure) -> Image.Image:
    content = BytesIO()
    figure.savefig(content, format="png", dpi=figure.dpi, pil_kwargs={"compress_level": 1})
    return Image.open(content).convert("RGB")


class _Drawing:
    """The figure, and those parts of it that change."""

    def __init__(self, figure: Figure, result: RunResult, waves: Sequence[NeuronWaves]) -> None:
        """Everything that is the same in all frames, at scales that have room for all of them."""
        self._figure, self._result, self._last = figure, result, waves[-1]
        what = self._last.neurons.what
        grid = figure.add_gridspec(2, 2, width_ratios=(1.15, 1), height_ratios=(1, 1))
        self._curves = _accuracy_lines(figure.add_subplot(grid[0, 0]), result)
        self._neurons = _shown_neurons(self._last)
        self._weights = self._weight_lines(grid[0, 1], waves)
        self._rows = _shown_rows(self._last)
        axes = figure.add_subplot(grid[1, 0])
        self._power = axes.imshow(
            waves[0].power[self._rows], aspect="auto", cmap="Blues", vmin=0, vmax=_brightest(waves, self._rows),
            interpolation="nearest",
        )  # fmt: skip
        axes.grid(visible=False)
        axes.set(
            title=f"Fourier power of the {what}", xlabel=self._last.waves.axis, ylabel="by strongest wave", yticks=[]
        )
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes = figure.add_subplot(grid[1, 1])
        limit = ipr_limit(own.spectra.neuron_ipr[own.live] for own in waves)
        self._bins = np.linspace(0, limit, _IPR_BINS + 1)
        most = max(int(self._histogram(own).max(initial=1)) for own in waves)
        places = (self._bins[:-1] + self._bins[1:]) / 2
        self._bars = axes.bar(
            places, np.zeros(_IPR_BINS), width=limit / _IPR_BINS, color=INPUT_COLOR, edgecolor=BAR_EDGE, linewidth=0.5
        )
        axes.set(
            title="How periodic they are",
            xlabel=f"IPR of a {what.removesuffix('s')}",
            xlim=(0, limit),
            ylim=(0, 1.05 * most),
        )
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        self._heading = figure.suptitle(f"{settings_line(result)}\n ", fontsize=9, fontweight="bold")

    def _weight_lines(self, place: SubplotSpec, waves: Sequence[NeuronWaves]) -> list[tuple[int, Line2D, Axes]]:
        """One row of U, or column of an embedding, for each neuron, read in the order that makes it a wave."""
        rows = place.subgridspec(max(1, len(self._neurons)), 1, hspace=0.1)
        lines = []
        for row, k in enumerate(self._neurons):
            axes = self._figure.add_subplot(rows[row])
            largest = max(float(np.abs(_vector(own, k)).max()) for own in waves) or 1.0
            (line,) = axes.plot(_vector(waves[0], k), color=BLUE, linewidth=1)
            axes.set(ylim=(-1.05 * largest, 1.05 * largest), yticks=[0], yticklabels=[])
            axes.margins(x=0.01)
            axes.tick_params(labelbottom=row == len(self._neurons) - 1)
            if row == 0:
                axes.set_title(f"Weights of {len(self._neurons)} of {len(self._last.wave)} {self._last.neurons.what}")
            lines.append((k, line, axes))
        return lines

    def _histogram(self, waves: NeuronWaves) -> Int64Array:
        return np.histogram(waves.spectra.neuron_ipr[waves.live], self._bins)[0]

    def show(self, step: int, waves: NeuronWaves) -> None:
        """The frame of this step."""
        past = [row for row in self._result.curve if row.step <= step]
        for column, line in self._curves.items():
            line.set_data([row.step for row in past], [row[column] for row in past])
        for k, line, axes in self._weights:
            line.set_ydata(_vector(waves, k))
            ipr = waves.spectra.neuron_ipr[k]
            words = "dead" if np.isnan(ipr) else f"IPR\n{ipr:.2f}"
            axes.set_ylabel(words, fontsize=7, rotation=0, ha="right", va="center")
        self._power.set_data(waves.power[self._rows])
        for bar, count in zip(self._bars, self._histogram(waves), strict=True):
            bar.set_height(count)
        phase = phases_along(past, self._result.corruption)[-1]
        self._heading.set_text(f"{settings_line(self._result)}\nstep {step:,}: {phase.label}")


def _accuracy_lines(axes: Axes, result: RunResult) -> dict[str, Line2D]:
    """The accuracies: pale what is to come, and a line of each that grows."""
    steps = [row.step for row in result.curve]
    lines = {}
    for column, (label, color, line) in ACCURACIES.items():
        values = [row[column] for row in result.curve]
        if not np.isnan(values).all():
            axes.plot(steps, values, line, color=color, alpha=0.2, linewidth=1)
            (lines[column],) = axes.plot([], [], line, color=color, label=label, linewidth=1.6)
    axes.set(ylabel="accuracy", xlabel="optimisation step", xscale="log", ylim=(-0.03, 1.03))
    axes.set_xlim(max(0.9, steps[0] * 0.9), max(steps[-1], 2) * 1.1)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)  # the curves need all the room
    return lines


def _shown_neurons(waves: NeuronWaves) -> list[int]:
    """Those that end as the most periodic, of different frequencies, and the one that ends as the least."""
    live = np.flatnonzero(waves.live)
    by_ipr = live[np.argsort(-waves.spectra.neuron_ipr[live], kind="stable")].tolist()
    periodic = list({waves.wave[k]: k for k in reversed(by_ipr)}.values())  # the best of each frequency
    periodic.sort(key=by_ipr.index)
    return list(dict.fromkeys([*periodic[: _SHOWN - 1], *by_ipr[-1:]])) or [0]


def _shown_rows(waves: NeuronWaves) -> Int64Array:
    """Neurons by the wave that is the strongest in the end: all, or some, evenly taken."""
    order = np.lexsort((-waves.spectra.neuron_ipr, waves.wave))
    order = order[waves.live[order]] if waves.live.any() else order
    chosen = np.linspace(0, len(order) - 1, min(_ROWS, len(order))).round().astype(np.int64)
    return np.asarray(order[chosen])


def _brightest(waves: Sequence[NeuronWaves], rows: Int64Array) -> float:
    return max(float(np.nanquantile(own.power[rows], 0.995)) for own in waves) or 1.0


def _vector(waves: NeuronWaves, neuron: int) -> FloatArray:
    vectors = next(iter(waves.neurons.vectors.values()))
    return np.asarray(vectors[neuron, waves.waves.places])
