"""Figure 2: grokking without corrupted labels, and how the weights become waves on the way."""

import math

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure

from grokscope.engines import initial_state
from grokscope.experiments import tables
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.paper.fig01 import BASE
from grokscope.experiments.paper.fig02_picture import (
    draw_grokking,
    draw_iprs_before_and_after,
    draw_row_before_and_after,
)
from grokscope.experiments.quantities.trends import largest_fall
from grokscope.experiments.scale import Scale
from grokscope.measure import NeuronSpectra, WaveSummary, neuron_spectra, neuron_waves
from grokscope.outputs import Table
from grokscope.plots import STYLE
from grokscope.result import RunResult
from grokscope.spec import RunSpec

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


def _test_when_fitted(evidence: Evidence) -> float:
    """Test accuracy at the first step with train accuracy of 99 %."""
    rows = (row.test_accuracy for row in evidence.network(EARLY).curve if row.train_accuracy >= 0.99)
    return next(rows, math.nan)


def _step(evidence: Evidence, column: str, accuracy: float) -> float:
    """The first measured step at which the accuracy is reached; NaN if it never is."""
    rows = (float(row.step) for row in evidence.network(EARLY).curve if getattr(row, column) >= accuracy)
    return next(rows, math.nan)


def _delay(evidence: Evidence) -> float:
    return _step(evidence, "test_accuracy", 0.9) - _step(evidence, "train_accuracy", 0.9)


def _rise(evidence: Evidence) -> float:
    return _step(evidence, "test_accuracy", 0.9) - _step(evidence, "test_accuracy", 0.1)


def _ipr_before(evidence: Evidence) -> float:
    return _spectra(evidence.network(EARLY))[0].mean_ipr


def _periodic_share(evidence: Evidence, *, after: bool) -> float:
    """The fraction of neurons with IPR above one half."""
    return float(np.mean(_spectra(evidence.network(GROKKED))[int(after)].neuron_ipr > 0.5))


def _waves(evidence: Evidence) -> WaveSummary:
    """The periodic neurons together."""
    result = evidence.network(GROKKED)
    waves = neuron_waves(result.spec.model, result.trained_weights(), result.spec.task)
    return waves.summary(waves.high)


def _phase_error(evidence: Evidence) -> float:
    return _waves(evidence).mean_residual / (math.pi / 2)


def _claim(name: str, paper: str, statement: str, *checks: Check, network: RunSpec) -> Claim:
    return Claim(name, paper, statement, lambda scale: Needs(networks=(network,), seeds=3), checks)


EXPERIMENT = Experiment(
    name="fig02",
    title="Grokking, and the weights becoming periodic",
    caption="Training without corrupted labels at α = 0.5 and weight decay 5. The network fits the training set first; "
    "test accuracy follows in a jump while the mean IPR rises. A row of U, that of a neuron of median IPR, and the "
    "IPR of all neurons, before training and after all of its steps.",
    needs=needs,
    draw=draw,
    claims=(
        _claim(
            "grokking-delay",
            "Section 1.1, Figure 2(a)",
            "Test accuracy rises suddenly, and only after the training set has been fitted.",
            Check("test accuracy when train accuracy first is 99 %", _test_when_fitted, high=0.2),
            Check("steps from train to test accuracy of 90 %", _delay, low=10),
            Check("steps in which test accuracy goes from 10 % to 90 %", _rise, high=20),
            Check("step at which test accuracy is 50 %", lambda e: _step(e, "test_accuracy", 0.5), low=20, high=50),
            network=EARLY,
        ),
        _claim(
            "ipr-rises",
            "Figure 2(a)",
            "The mean IPR rises all the time, from that of noise to a high value.",
            Check("at the start", _ipr_before, high=0.08),
            Check(
                "largest fall within 200 steps",
                lambda e: largest_fall([row.mean_ipr for row in e.network(EARLY).curve]),
                high=0.05,
            ),
            Check("after 200 steps", lambda e: e.network(EARLY).final.mean_ipr, low=0.7),
            network=EARLY,
        ),
        _claim(
            "weights-become-waves",
            "Figure 2(b, c)",
            "Grokking turns the weights of nearly all neurons into waves.",
            Check("neurons with IPR above 0.5 before", lambda e: _periodic_share(e, after=False), high=0.01),
            Check("neurons with IPR above 0.5 after", lambda e: _periodic_share(e, after=True), low=0.9),
            Check("mean IPR after", lambda e: e.network(GROKKED).final.mean_ipr, low=0.7),
            network=GROKKED,
        ),
        _claim(
            "weights-like-analytic",
            "Section 1.1",
            "The trained weights are like the analytic solution: the three vectors of a neuron are waves of one "
            "frequency, and their phases obey its relation.",
            Check("neurons of one frequency, of the periodic ones", lambda e: _waves(e).agreement, low=0.9),
            Check("mean |φ_u + φ_v − φ_w| in units of π/2, which is guessing", _phase_error, high=0.2),
            network=GROKKED,
        ),
    ),
)
