"""Figure 5: BatchNorm leaves the neurons as they are, and turns down those that memorise."""

from collections.abc import Callable
from functools import partial
from typing import Unpack

import numpy as np

from grokscope.experiments import tables
from grokscope.experiments.cause import Cause, Reason, Superseded
from grokscope.experiments.claim import Check, Claim, Remarks
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.quantities.curves import final, final_difference
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

# The paper says Adam; AdamW without weight decay is the same.
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
        axes.set_ylabel("neurons")
        axes.set_ylim(top=highest)
    scales.set(ylabel="|γ|", ylim=(0, None))
    return Drawing(figure, tables.neurons({"with BatchNorm": normed, "without BatchNorm": plain}))


# ---- what the claims measure ------------------------------------------------------------------------------------


def _gap(first: RunResult, second: RunResult) -> float:
    """How far apart the two distributions of the IPR are."""
    return largest_gap(live_ipr(first.neurons), live_ipr(second.neurons))


def _high_mode(result: RunResult) -> float:
    """The median of the neurons that are more periodic than not."""
    values = live_ipr(result.neurons)
    return float(np.median(values[values > 0.5])) if (values > 0.5).any() else np.nan


def _low_share(result: RunResult) -> float:
    return share_below(live_ipr(result.neurons), LOW_IPR)


def _mean_scale(result: RunResult, *, high: bool) -> float:
    """Mean |γ| of neurons with a high or a low IPR."""
    spectra = result.neurons
    if spectra is None or spectra.norm_scale is None:
        return np.nan
    # Dead neurons are neither.
    chosen = spectra.neuron_ipr > PURELY_PERIODIC_IPR if high else spectra.neuron_ipr < LOW_IPR
    return float(np.abs(spectra.norm_scale[chosen]).mean()) if chosen.any() else np.nan


def _high_scale(result: RunResult) -> float:
    return _mean_scale(result, high=True)


def _low_scale(result: RunResult) -> float:
    return _mean_scale(result, high=False)


def _correlation(result: RunResult) -> float:
    return np.nan if result.neurons is None else result.neurons.norm_correlation


def _without_low(result: RunResult) -> Row:
    """The network without its low-IPR neurons."""
    weights = result.trained_weights()
    low = np.array([], int) if result.neurons is None else np.flatnonzero(result.neurons.neuron_ipr < LOW_IPR)
    return measure_network(result.spec.model.module(result.spec.model.pruned(weights, low)), result.dataset())


def _lost(result: RunResult, accuracy: str) -> float:
    """How much of an accuracy the low-IPR neurons account for."""
    return float(getattr(result.final, accuracy) - getattr(_without_low(result), accuracy))


def _memory_lost(result: RunResult) -> float:
    """Which part of the corrupted accuracy above chance the low-IPR neurons account for."""
    return _lost(result, "corrupted_accuracy") / (result.final.corrupted_accuracy - 1 / result.spec.task.classes)


def _with_memorisers_turned_up(result: RunResult) -> float:
    """By how much the corrupted accuracy rises when low-IPR neurons get the mean |γ| of those with a high IPR."""
    weights = result.trained_weights()
    if result.neurons is None:
        return np.nan
    low = result.neurons.neuron_ipr < LOW_IPR
    scales = weights["norm_scale"].copy()
    scales[low] = np.copysign(_high_scale(result), scales[low])
    changed = measure_network(make_network(result.spec.model, {**weights, "norm_scale": scales}), result.dataset())
    return float(changed.corrupted_accuracy - result.final.corrupted_accuracy)


def _early(accuracy: str) -> Callable[[RunResult], float]:
    """An accuracy at step 2000, or at the end of a run that is shorter."""
    return lambda result: float(getattr([row for row in result.curve if row.step <= EARLY_STEP][-1], accuracy))


_SEEN = "The bounds were set after earlier measurements of these two networks (docs/networks.md) had been read."


def _claim(name: str, paper: str, statement: str, *checks: Check, **remarks: Unpack[Remarks]) -> Claim:
    remarks.setdefault("seen_before", _SEEN)
    return Claim(name, paper, statement, checks, beside=(NORMED, PLAIN), **remarks)


EXPERIMENT = Experiment(
    name="fig05",
    title="IPR with and without BatchNorm, and the scales of BatchNorm",
    caption="IPR of the neurons of two networks at α = 0.65 and ξ = 0.2, trained on mini-batches of 64, with and "
    "without BatchNorm, and the scale |γ| that BatchNorm gives each neuron. The neurons are much the same; BatchNorm "
    "turns down those that memorise, but not off: what little is memorised sits in them.",
    needs=needs,
    draw=draw,
    claims=(
        _claim(
            "batchnorm-same-ipr",
            "Section 2.1, Figure 5",
            "BatchNorm does not change the distribution of the IPR: networks with and without it have alike neurons.",
            Check("largest gap of the two", _gap, high=0.15, of=(NORMED, PLAIN)),
            Check("high mode with BatchNorm", _high_mode, low=0.85, of=NORMED),
            Check("high mode without", _high_mode, low=0.85, of=PLAIN),
        ),
        _claim(
            "batchnorm-keeps-low-ipr",
            "Section 2.1, Figure 5",
            "With BatchNorm a network can invert fully and still have its low-IPR neurons.",
            Check("test accuracy", final("test_accuracy"), low=0.9, of=NORMED),
            Check("train accuracy", final("train_accuracy"), high=0.85, of=NORMED),
            Check("share of neurons with IPR < 0.1", _low_share, low=0.2, of=NORMED),
            cause=Cause(Reason.SEEDS, "Two of three seeds are inside the bound, and the third is outside by 0.002."),
            note="Of three seeds two end in Full Inversion, with train accuracies of 0.832 and 0.837, and one just "
            "outside of it, with 0.852.",
        ),
        _claim(
            "batchnorm-scales-follow-ipr",
            "Section 2.1, Figure 5 (right)",
            "The scales of BatchNorm are strongly correlated with the IPR of the neurons.",
            Check("rank correlation of |γ| and IPR", _correlation, low=0.5, of=NORMED),
        ),
        _claim(
            "batchnorm-turns-memorisers-down",
            "Abstract (iv), Figure 5 (right)",
            "BatchNorm gives neurons with a high IPR larger scales than those with a low one.",
            Check("mean |γ| of IPR < 0.1", _low_scale, low=0.015, high=0.04, of=NORMED),
            Check("mean |γ| of IPR > 0.9", _high_scale, low=0.03, high=0.06, of=NORMED),
            Check("ratio of the two", lambda result: _high_scale(result) / _low_scale(result), low=1.3, of=NORMED),
        ),
        _claim(
            "batchnorm-prunes",
            "Section 2.1",
            "A network with BatchNorm is as good as pruned: taking its low-IPR neurons out changes its answers little, "
            "and less than without BatchNorm, and turning them up again brings memory back.",
            Check("test accuracy lost", lambda result: _lost(result, "test_accuracy"), high=0.02, of=NORMED),
            Check("train accuracy lost", lambda result: _lost(result, "train_accuracy"), high=0.05, of=NORMED),
            Check(
                "train accuracy lost, without BatchNorm minus with",
                lambda plain, normed: _lost(plain, "train_accuracy") - _lost(normed, "train_accuracy"),
                low=0,
                of=(PLAIN, NORMED),
            ),
            Check(
                "corrupted accuracy gained with their scales as large as the others'",
                _with_memorisers_turned_up,
                low=0.1,
                of=NORMED,
            ),
            seen_before=f"{_SEEN} The check against the network without BatchNorm was added after the others had "
            "passed. The last check was added after that, and before it was measured.",
            superseded=Superseded(
                ("batchnorm-mutes-memory",),
                "2026-11-19",
                "The train accuracy that may be lost, 0.05, is about all that there is to lose: the network memorises "
                "little.",
            ),
        ),
        _claim(
            "batchnorm-mutes-memory",
            "Section 2.1",
            "BatchNorm mutes low-IPR neurons: without them the network loses the smaller part of what little it "
            "memorises, its test accuracy stays, and turning them up brings memory back.",
            Check("test accuracy lost", lambda result: _lost(result, "test_accuracy"), high=0.02, of=NORMED),
            Check("corrupted accuracy lost, of what there was above chance", _memory_lost, high=0.5, of=NORMED),
            Check(
                "corrupted accuracy gained with their scales as large as the others'",
                _with_memorisers_turned_up,
                low=0.1,
                of=NORMED,
            ),
            stated="2026-11-19",
            seen_before="Stated after the train accuracy lost had been measured for batchnorm-prunes: without the "
            "low-IPR neurons it is that of a network that memorises nothing.",
            cause=Cause(
                Reason.UNEXPLAINED,
                "All that the network memorises sits in its low-IPR neurons and goes with them (1.00 ± 0.01 of it). "
                "Their scales are small, so they are turned down, but not off.",
            ),
        ),
        _claim(
            "batchnorm-regularises",
            "Section 2.1, Figure 9",
            "At the same setting a network with BatchNorm memorises fewer corrupted labels than one without.",
            Check(
                "corrupted accuracy without minus with",
                final_difference("corrupted_accuracy"),
                low=0.03,
                of=(PLAIN, NORMED),
            ),
            cause=Cause(Reason.SEEDS, "Two of three seeds show it, and one does not."),
            note="Of three seeds two memorise clearly less with BatchNorm, by 0.11 and 0.09, and one as much: with "
            "BatchNorm the number goes up and down, and for this seed it is 0.19 at step 7000 and 0.26 at step 8000.",
        ),
        _claim(
            "batchnorm-known-accuracies",
            "ours, on Figure 5",
            "Both networks have found the rule by step 2000, and hardly memorise.",
            Check("train accuracy with BatchNorm", _early("train_accuracy"), 0.774, 0.834, of=NORMED),
            Check("train accuracy without", _early("train_accuracy"), 0.789, 0.849, of=PLAIN),
            Check("test accuracy with BatchNorm", _early("test_accuracy"), low=0.98, of=NORMED),
            Check("test accuracy without", _early("test_accuracy"), low=0.98, of=PLAIN),
            note="The paper gives no numbers here: these come from the authors' program, ± 0.03. Afterwards both "
            "networks begin to memorise again.",
        ),
    ),
)
