"""Figure 5: BatchNorm leaves the neurons as they are, and turns the memorising ones down."""

from functools import partial

import numpy as np
import numpy.typing as npt

from grokscope.experiments import tables
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.quantities.distributions import (
    LOW_IPR,
    PURELY_PERIODIC_IPR,
    largest_gap,
    live_ipr,
    share_below,
)
from grokscope.experiments.scale import Scale
from grokscope.measure import Row, measure_network
from grokscope.models import make_network
from grokscope.plots import draw_row
from grokscope.plots.runs import draw_ipr_histogram, draw_norm_scales
from grokscope.result import RunResult
from grokscope.spec import RunSpec

# The paper says Adam, which AdamW without weight decay is.
PLAIN = RunSpec().updated({"task.data_fraction": 0.65, "task.corruption": 0.2}).with_batches_of(64)
NORMED = PLAIN.updated({"model.norm": "batch"})
EARLY_STEP = 2000  # at which the accuracies of a faithful run are known


def needs(scale: Scale) -> Needs:
    """Two networks."""
    return Needs(networks=(NORMED, PLAIN))


def draw(evidence: Evidence) -> Drawing:
    """Both histograms, and |γ| against IPR."""
    normed, plain = evidence.networks((NORMED, PLAIN))
    panels = {
        "with BatchNorm": partial(draw_ipr_histogram, result=normed),
        "without BatchNorm": partial(draw_ipr_histogram, result=plain),
        "scales of BatchNorm": partial(draw_norm_scales, result=normed),
    }
    figure = draw_row(panels)
    histograms, scales = figure.axes[:2], figure.axes[2]
    highest = max(axes.get_ylim()[1] for axes in histograms)  # the same for both, which are to be compared
    for axes in histograms:
        axes.set(ylabel="neurons", ylim=(0, highest))
    scales.set(ylabel="|γ|", ylim=(0, None))
    return Drawing(figure, tables.neurons({"with BatchNorm": normed, "without BatchNorm": plain}))


# ---- what the claims measure ------------------------------------------------------------------------------------


def _ipr(evidence: Evidence, spec: RunSpec) -> npt.NDArray[np.float64]:
    return live_ipr(evidence.network(spec).neurons)


def _high_mode(evidence: Evidence, spec: RunSpec) -> float:
    """The median of the neurons that are more periodic than not."""
    values = _ipr(evidence, spec)
    return float(np.median(values[values > 0.5])) if (values > 0.5).any() else np.nan


def _mean_scale(evidence: Evidence, *, high: bool) -> float:
    """Mean |γ| of neurons with a high or a low IPR."""
    spectra = evidence.network(NORMED).neurons
    if spectra is None or spectra.norm_scale is None:
        return np.nan
    chosen = spectra.neuron_ipr > PURELY_PERIODIC_IPR if high else spectra.neuron_ipr < LOW_IPR  # dead ones are neither
    return float(np.abs(spectra.norm_scale[chosen]).mean()) if chosen.any() else np.nan


def _correlation(evidence: Evidence) -> float:
    spectra = evidence.network(NORMED).neurons
    return np.nan if spectra is None else spectra.norm_correlation


def _without_low(result: RunResult) -> Row:
    """The network without its low-IPR neurons."""
    weights = result.trained_weights()
    low = np.array([], int) if result.neurons is None else np.flatnonzero(result.neurons.neuron_ipr < LOW_IPR)
    return measure_network(result.spec.model.module(result.spec.model.pruned(weights, low)), result.dataset())


def _lost(evidence: Evidence, spec: RunSpec, accuracy: str) -> float:
    """How much of an accuracy the low-IPR neurons account for."""
    result = evidence.network(spec)
    return float(getattr(result.final, accuracy) - getattr(_without_low(result), accuracy))


def _with_memorisers_turned_up(evidence: Evidence) -> float:
    """By how much the corrupted accuracy rises when low-IPR neurons get the mean |γ| of those with a high IPR."""
    result = evidence.network(NORMED)
    weights = result.trained_weights()
    if result.neurons is None:
        return np.nan
    low = result.neurons.neuron_ipr < LOW_IPR
    scales = weights["norm_scale"].copy()
    scales[low] = np.copysign(_mean_scale(evidence, high=True), scales[low])
    changed = measure_network(make_network(result.spec.model, {**weights, "norm_scale": scales}), result.dataset())
    return float(changed.corrupted_accuracy - result.final.corrupted_accuracy)


def _early(evidence: Evidence, spec: RunSpec, accuracy: str) -> float:
    """An accuracy at step 2000, or at the end of a run that is shorter."""
    rows = [row for row in evidence.network(spec).curve if row.step <= EARLY_STEP]
    return float(getattr(rows[-1], accuracy))


def _claim(name: str, paper: str, statement: str, *checks: Check, note: str = "") -> Claim:
    return Claim(name, paper, statement, lambda scale: Needs(networks=(NORMED, PLAIN), seeds=3), checks, note)


EXPERIMENT = Experiment(
    name="fig05",
    title="IPR with and without BatchNorm, and the scales of BatchNorm",
    caption="IPR of the neurons of two networks at α = 0.65 and ξ = 0.2, trained on mini-batches of 64, with and "
    "without BatchNorm, and the scale |γ| that BatchNorm gives each neuron. The neurons are much the same; BatchNorm "
    "turns those down that memorise.",
    needs=needs,
    draw=draw,
    claims=(
        _claim(
            "batchnorm-same-ipr",
            "Section 2.1, Figure 5",
            "BatchNorm does not change the distribution of the IPR: networks with and without it have alike neurons.",
            Check("largest gap of the two", lambda e: largest_gap(_ipr(e, NORMED), _ipr(e, PLAIN)), high=0.15),
            Check("high mode with BatchNorm", lambda e: _high_mode(e, NORMED), low=0.85),
            Check("high mode without", lambda e: _high_mode(e, PLAIN), low=0.85),
        ),
        _claim(
            "batchnorm-keeps-low-ipr",
            "Section 2.1, Figure 5",
            "With BatchNorm a network can invert fully and still have its low-IPR neurons.",
            Check("test accuracy", lambda e: e.network(NORMED).final.test_accuracy, low=0.9),
            Check("train accuracy", lambda e: e.network(NORMED).final.train_accuracy, high=0.85),
            Check("share of neurons with IPR < 0.1", lambda e: share_below(_ipr(e, NORMED), LOW_IPR), low=0.2),
            note="Of three seeds two end in Full Inversion, with train accuracies of 0.832 and 0.837, and one just "
            "outside of it, with 0.852.",
        ),
        _claim(
            "batchnorm-scales-follow-ipr",
            "Section 2.1, Figure 5 (right)",
            "The scales of BatchNorm are strongly correlated with the IPR of the neurons.",
            Check("rank correlation of |γ| and IPR", _correlation, low=0.5),
        ),
        _claim(
            "batchnorm-turns-memorisers-down",
            "Abstract (iv), Figure 5 (right)",
            "BatchNorm gives neurons with a high IPR larger scales than those with a low one.",
            Check("mean |γ| of IPR < 0.1", lambda e: _mean_scale(e, high=False), low=0.015, high=0.04),
            Check("mean |γ| of IPR > 0.9", lambda e: _mean_scale(e, high=True), low=0.03, high=0.06),
            Check("ratio of the two", lambda e: _mean_scale(e, high=True) / _mean_scale(e, high=False), low=1.3),
        ),
        _claim(
            "batchnorm-prunes",
            "Section 2.1",
            "A network with BatchNorm is as good as pruned: taking its low-IPR neurons out changes its answers little, "
            "and less than without BatchNorm, and turning them up again brings memory back.",
            Check("test accuracy lost", lambda e: _lost(e, NORMED, "test_accuracy"), high=0.02),
            Check("train accuracy lost", lambda e: _lost(e, NORMED, "train_accuracy"), high=0.05),
            Check(
                "train accuracy lost, without BatchNorm minus with",
                lambda e: _lost(e, PLAIN, "train_accuracy") - _lost(e, NORMED, "train_accuracy"),
                low=0,
            ),
            Check(
                "corrupted accuracy gained with their scales as large as the others'", _with_memorisers_turned_up, 0.1
            ),
        ),
        _claim(
            "batchnorm-regularises",
            "Section 2.1, Figure 9",
            "At the same setting a network with BatchNorm memorises fewer corrupted labels than one without.",
            Check(
                "corrupted accuracy without minus with",
                lambda e: e.network(PLAIN).final.corrupted_accuracy - e.network(NORMED).final.corrupted_accuracy,
                low=0.03,
            ),
            note="Of three seeds two memorise clearly less with BatchNorm, by 0.11 and 0.09, and one as much: with "
            "BatchNorm the number goes up and down, and for this seed it is 0.19 at step 7000 and 0.26 at step 8000.",
        ),
        _claim(
            "batchnorm-known-accuracies",
            "ours, on Figure 5",
            "Both networks have found the rule by step 2000, and hardly memorise.",
            Check("train accuracy with BatchNorm", lambda e: _early(e, NORMED, "train_accuracy"), 0.774, 0.834),
            Check("train accuracy without", lambda e: _early(e, PLAIN, "train_accuracy"), 0.789, 0.849),
            Check("test accuracy with BatchNorm", lambda e: _early(e, NORMED, "test_accuracy"), low=0.98),
            Check("test accuracy without", lambda e: _early(e, PLAIN, "test_accuracy"), low=0.98),
            note="The paper gives no numbers here: these are of the authors' program, ± 0.03. Afterwards both networks "
            "begin to memorise again.",
        ),
    ),
)
