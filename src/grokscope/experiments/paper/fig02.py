"""Figure 2: grokking without corrupted labels, and how the weights become waves on the way."""

import math

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure

from grokscope.engines import initial_state
from grokscope.experiments import tables
from grokscope.experiments.claim import MEASUREMENTS_READ, Check, Claim
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.paper.fig01 import BASE
from grokscope.experiments.paper.fig02_picture import (
    draw_grokking,
    draw_iprs_before_and_after,
    draw_row_before_and_after,
)
from grokscope.experiments.quantities.curves import final
from grokscope.experiments.quantities.trends import largest_fall
from grokscope.experiments.scale import Scale
from grokscope.measure import NeuronSpectra, WaveSummary, neuron_spectra, neuron_waves
from grokscope.plots import STYLE
from grokscope.result import RunResult
from grokscope.tables import Table

GROKKED = BASE.updated({"task.corruption": 0.0, "optimizer.weight_decay": 5.0})
# The same run's first steps, in which everything happens, measured often.
EARLY = GROKKED.updated({"training.steps": 200, "training.measure_every": 2})


def needs(scale: Scale) -> Needs:
    """One network, and its first steps once more."""
    return Needs(networks=(EARLY, GROKKED))


def draw(evidence: Evidence) -> Drawing:
    """Accuracies and mean IPR, a row of U, and the IPR of all neurons, before and after."""
    early, grokked = evidence.network(EARLY), evidence.network(GROKKED)
    before, after = initial_state(grokked.spec).weights["U"], grokked.trained_weights()["U"]  # [N, p] each
    initial, final = _spectra(grokked)
    k = _typical(final)
    with style.context(STYLE):
        figure = Figure(figsize=(12.4, 3.7))
        curves, row, histogram = figure.subplots(1, 3)
        draw_grokking(curves, early)
        draw_row_before_and_after(row, before[k], after[k], f"Row {k} of U")
        draw_iprs_before_and_after(histogram, initial, final)
    weights: Table = {"neuron": [k] * before.shape[1], "index": list(range(before.shape[1]))}
    weights |= {"before": before[k].tolist(), "after": after[k].tolist()}
    iprs: Table = {"neuron": list(range(len(before)))}
    iprs |= {"before": initial.neuron_ipr.tolist(), "after": final.neuron_ipr.tolist()}
    data = tables.stacked(
        curve=tables.curves({"weight decay 5": early}), row_of_u=_of(grokked, weights), ipr=_of(grokked, iprs)
    )
    return Drawing(figure, data)


def _of(result: RunResult, table: Table) -> Table:
    return {"run_id": [result.run_id] * len(next(iter(table.values()))), **table}


def _spectra(result: RunResult) -> tuple[NeuronSpectra, NeuronSpectra]:
    """At the start and at the end."""
    spec = result.spec
    before, after = (
        neuron_spectra(spec.model, weights, spec.task)
        for weights in (initial_state(spec).weights, result.trained_weights())
    )
    assert before is not None
    assert after is not None
    return before, after


def _typical(spectra: NeuronSpectra) -> int:
    """The live neuron whose IPR is the median, so that the example is no better than the others."""
    ipr = np.where(spectra.dead, np.inf, spectra.neuron_ipr)
    return int(np.argsort(ipr, kind="stable")[(~spectra.dead).sum() // 2])


def _test_when_fitted(result: RunResult) -> float:
    """Test accuracy at the first step with train accuracy of 99 %."""
    rows = (row.test_accuracy for row in result.curve if row.train_accuracy >= 0.99)
    return next(rows, math.nan)


def _step(result: RunResult, column: str, accuracy: float) -> float:
    """The first measured step at which the accuracy is reached; NaN if it never is."""
    rows = (float(row.step) for row in result.curve if getattr(row, column) >= accuracy)
    return next(rows, math.nan)


def _delay(result: RunResult) -> float:
    return _step(result, "test_accuracy", 0.9) - _step(result, "train_accuracy", 0.9)


def _rise(result: RunResult) -> float:
    return _step(result, "test_accuracy", 0.9) - _step(result, "test_accuracy", 0.1)


def _ipr_before(result: RunResult) -> float:
    return _spectra(result)[0].mean_ipr


def _periodic_share(spectra: NeuronSpectra) -> float:
    """The fraction of neurons with IPR above one half."""
    return float(np.mean(spectra.neuron_ipr > 0.5))


def _waves(result: RunResult) -> WaveSummary:
    """The periodic neurons together."""
    waves = neuron_waves(result.spec.model, result.trained_weights(), result.spec.task)
    return waves.summary(waves.high)


def _phase_error(result: RunResult) -> float:
    return _waves(result).mean_residual / (math.pi / 2)


EXPERIMENT = Experiment(
    name="fig02",
    title="Grokking, and the weights becoming periodic",
    caption="Training without corrupted labels at α = 0.5 and weight decay 5. The network fits the training set "
    "first; test accuracy follows in a jump while the mean IPR rises. Also shown: a row of U, of a neuron with median "
    "IPR, and the IPR of all neurons, before and after training.",
    needs=needs,
    draw=draw,
    claims=(
        Claim(
            "grokking-delay",
            "Section 1.1, Figure 2(a)",
            "Test accuracy rises suddenly, and only after the training set has been fitted.",
            (
                Check("test accuracy when train accuracy first is 99 %", _test_when_fitted, high=0.2, of=EARLY),
                Check("steps from train to test accuracy of 90 %", _delay, low=10, of=EARLY),
                Check("steps in which test accuracy goes from 10 % to 90 %", _rise, high=20, of=EARLY),
                Check(
                    "step at which test accuracy is 50 %",
                    lambda result: _step(result, "test_accuracy", 0.5),
                    low=20,
                    high=50,
                    of=EARLY,
                ),
            ),
        ),
        Claim(
            "ipr-rises",
            "Figure 2(a)",
            "The mean IPR rises all the time, from that of noise to a high value.",
            (
                Check("at the start", _ipr_before, high=0.08, of=EARLY),
                Check(
                    "largest fall within 200 steps",
                    lambda result: largest_fall([row.mean_ipr for row in result.curve]),
                    high=0.05,
                    of=EARLY,
                ),
                Check("after 200 steps", final("mean_ipr"), low=0.7, of=EARLY),
            ),
        ),
        Claim(
            "weights-become-waves",
            "Figure 2(b, c)",
            "Grokking turns the weights of nearly all neurons into waves.",
            (
                Check(
                    "neurons with IPR above 0.5 before",
                    lambda result: _periodic_share(_spectra(result)[0]),
                    high=0.01,
                    of=GROKKED,
                ),
                Check(
                    "neurons with IPR above 0.5 after",
                    lambda result: _periodic_share(_spectra(result)[1]),
                    low=0.9,
                    of=GROKKED,
                ),
                Check("mean IPR after", final("mean_ipr"), low=0.7, of=GROKKED),
            ),
        ),
        Claim(
            "weights-like-analytic",
            "Section 1.1",
            "The trained weights are like the analytic solution: the three vectors of a neuron are waves of one "
            "frequency, and their phases obey its relation.",
            (
                Check(
                    "neurons of one frequency, of the periodic ones",
                    lambda result: _waves(result).agreement,
                    low=0.9,
                    of=GROKKED,
                ),
                Check("mean |φ_u + φ_v − φ_w| in units of π/2, which is guessing", _phase_error, high=0.2, of=GROKKED),
            ),
            seen_before=MEASUREMENTS_READ,
        ),
    ),
)
