"""Figure 4: how weight decay and dropout move neurons from low to high IPR."""

from collections.abc import Callable
from typing import Unpack

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure

from grokscope.arrays import Int64Array
from grokscope.experiments import tables
from grokscope.experiments.cause import Cause, Reason
from grokscope.experiments.claim import SEEN_AT_QUICK_SCALE, Check, Claim, Remarks
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.paper import fig01
from grokscope.experiments.quantities.curves import final, final_difference
from grokscope.experiments.quantities.distributions import PERIODIC_IPR
from grokscope.experiments.scale import Scale
from grokscope.measure import neuron_waves
from grokscope.plots import STYLE
from grokscope.plots.runs import draw_ipr_histogram
from grokscope.result import RunResult
from grokscope.spec import RunSpec

DROPOUTS = (0.0, 0.3, 0.6)  # of Figures 3b and 19; without any it is the network without weight decay


def dropout_specs() -> list[RunSpec]:
    """The default setting at α = .5, ξ = .35, with growing dropout: Figure 19 has them too."""
    return [fig01.BASE.updated({"optimizer.weight_decay": 0.0, "model.dropout": each}) for each in DROPOUTS]


def needs(scale: Scale) -> Needs:
    """Three networks with weight decay, and three with dropout, one of them the same."""
    return Needs(networks=tuple({spec.run_id: spec for spec in [*fig01.specs(), *dropout_specs()]}.values()))


def draw(evidence: Evidence) -> Drawing:
    """Weight decay above, dropout below."""
    decay = {f"weight decay {spec.optimizer.weight_decay:g}": evidence.network(spec) for spec in fig01.specs()}
    dropout = {f"dropout {spec.model.dropout:g}": evidence.network(spec) for spec in dropout_specs()}
    with style.context(STYLE):
        figure = Figure(figsize=(11, 6))
        grid = figure.subplots(2, 3, sharey=True)
        for row, results in zip(grid, (decay, dropout), strict=True):
            for axes, (title, result) in zip(row, results.items(), strict=True):
                draw_ipr_histogram(axes, result)
                axes.set_title(f"{title}\n{result.outcome}")
            row[0].set_ylabel("neurons")
    return Drawing(figure, tables.stacked(weight_decay=tables.neurons(decay), dropout=tables.neurons(dropout)))


def _share(low: float, high: float) -> Callable[[RunResult], float]:
    """The fraction of all neurons whose IPR lies between these; the dead have none."""
    return lambda result: _ipr_share(result, low, high)


def _ipr_share(result: RunResult, low: float, high: float) -> float:
    if result.neurons is None:
        return float("nan")
    return float(np.mean((result.neurons.neuron_ipr >= low) & (result.neurons.neuron_ipr < high)))


def _fewer_low(first: RunResult, second: RunResult) -> float:
    """By how much the share of neurons with a low IPR falls from one network to another."""
    return _ipr_share(first, 0, 0.1) - _ipr_share(second, 0, 0.1)


def _more_periodic(first: RunResult, second: RunResult) -> float:
    """By how much the share of periodic neurons grows from one network to another."""
    return _ipr_share(second, PERIODIC_IPR, 1.01) - _ipr_share(first, PERIODIC_IPR, 1.01)


def _neurons_per_frequency(result: RunResult) -> float:
    """The fewest periodic neurons that share a frequency, of those that have any."""
    counts = _periodic_by_frequency(result)
    return float(counts[counts > 0].min()) if counts.any() else float("nan")


def _frequencies(result: RunResult) -> float:
    """How many frequencies the periodic neurons have, as a fraction of ⌈p/2⌉."""
    counts = _periodic_by_frequency(result)
    return float((counts > 0).sum() / -(-result.spec.task.modulus // 2))


def _periodic_by_frequency(result: RunResult) -> Int64Array:
    waves = neuron_waves(result.spec.model, result.trained_weights(), result.spec.task)
    return waves.counts(waves.spectra.neuron_ipr > PERIODIC_IPR)


_NONE, _FIVE, _FIFTEEN = fig01.specs()
_, _SOME, _MUCH = dropout_specs()


def _claim(name: str, paper: str, statement: str, *checks: Check, **remarks: Unpack[Remarks]) -> Claim:
    return Claim(name, paper, statement, checks, **remarks)


EXPERIMENT = Experiment(
    name="fig04",
    title="IPR histograms in different phases",
    caption="The IPR of all neurons after training at α = 0.5 and ξ = 0.35, with growing weight decay (above) and "
    "dropout (below). Unregularised networks have many neurons of low IPR, which memorise, and some of high IPR; "
    "regularisation turns the former into the latter.",
    needs=needs,
    draw=draw,
    claims=(
        _claim(
            "bimodal-ipr",
            "Hypothesis 2.1, Figure 4 (left)",
            "In Coexistence neurons are either of low or of high IPR, and hardly any lie between.",
            Check("neurons with IPR below 0.1", _share(0, 0.1), low=0.5, high=0.8, of=_NONE),
            Check("neurons with IPR from 0.2 to 0.6", _share(0.2, 0.6), high=0.1, of=_NONE),
            Check("neurons with IPR above 0.7", _share(0.7, 1.01), low=0.15, high=0.45, of=_NONE),
        ),
        _claim(
            "decay-shifts-ipr",
            "Section 3.1, Figure 4(a)",
            "More weight decay leaves fewer neurons of low IPR and raises the mean.",
            Check("mean IPR at wd 5, above wd 0", final_difference("mean_ipr"), low=0.05, of=(_FIVE, _NONE)),
            Check("mean IPR at wd 15, above wd 5", final_difference("mean_ipr"), low=0.05, of=(_FIFTEEN, _FIVE)),
            Check("fewer neurons below 0.1 at wd 5 than at wd 0", _fewer_low, low=0.05, of=(_NONE, _FIVE)),
            Check("fewer neurons below 0.1 at wd 15 than at wd 5", _fewer_low, low=0.1, of=(_FIVE, _FIFTEEN)),
        ),
        _claim(
            "dropout-inverts",
            "Abstract (iii), Section 2, Figure 3(b)",
            "Dropout too makes a network ignore corrupted labels, first some of them and then all.",
            Check("test accuracy with dropout 0.3", final("test_accuracy"), low=0.9, of=_SOME),
            Check("train accuracy with dropout 0.3", final("train_accuracy"), high=0.9, of=_SOME),
            Check("test accuracy with dropout 0.6", final("test_accuracy"), low=0.9, of=_MUCH),
            Check("train accuracy with dropout 0.6", final("train_accuracy"), high=0.7, of=_MUCH),
        ),
        _claim(
            "dropout-shifts-ipr",
            "Section 2.1, Figure 4(b)",
            "More dropout leaves fewer neurons of low IPR and raises the mean.",
            Check("mean IPR with dropout 0.3, above none", final_difference("mean_ipr"), low=0.05, of=(_SOME, _NONE)),
            Check("mean IPR with dropout 0.6, above 0.3", final_difference("mean_ipr"), low=0.05, of=(_MUCH, _SOME)),
            Check("fewer neurons below 0.1 with dropout 0.6 than with none", _fewer_low, low=0.1, of=(_NONE, _MUCH)),
        ),
        _claim(
            "neurons-are-converted",
            "Section 1, Abstract (iv), Figure 4",
            "Weight decay and dropout do not only remove memorising neurons: generalising ones become more numerous.",
            Check(
                "share of all neurons with IPR above 0.5, wd 5 minus wd 0", _more_periodic, low=0.05, of=(_NONE, _FIVE)
            ),
            Check(
                "share of all neurons with IPR above 0.5, wd 15 minus wd 5",
                _more_periodic,
                low=0.05,
                of=(_FIVE, _FIFTEEN),
            ),
            Check("the same, dropout 0.3 minus none", _more_periodic, low=0.05, of=(_NONE, _SOME)),
            Check("the same, dropout 0.6 minus 0.3", _more_periodic, low=0.05, of=(_SOME, _MUCH)),
            seen_before=SEEN_AT_QUICK_SCALE,
        ),
        _claim(
            "memorising-neurons-vanish",
            "Section 2.1, Figure 4 (right)",
            "In Full Inversion hardly any neuron of low IPR is left, whether weight decay or dropout led there.",
            Check("neurons with IPR below 0.1 at wd 15", _share(0, 0.1), high=0.1, of=_FIFTEEN),
            Check("neurons with IPR below 0.1 with dropout 0.6", _share(0, 0.1), high=0.1, of=_MUCH),
            cause=Cause(
                Reason.UNEXPLAINED,
                "At weight decay 15 hardly any is left, but with dropout 0.6 they are 0.16 of all neurons in the "
                "mean over three seeds; the text does not say which dropout Figure 4(b) shows.",
            ),
            note="With dropout 0.6 some 15 % of the neurons keep a low IPR, three times as many as at weight decay 15, "
            "though the corrupted labels are not memorised (train accuracy 0.66).",
        ),
        _claim(
            "redundant-frequencies",
            "Section 3.2",
            "Periodic neurons cover all ⌈p/2⌉ frequencies but the constant, and several share each of them.",
            Check("fewest neurons to a frequency at wd 15", _neurons_per_frequency, low=2, of=_FIFTEEN),
            Check("frequencies over ⌈p/2⌉ at wd 15", _frequencies, low=0.9, high=1, of=_FIFTEEN),
            Check("fewest neurons to a frequency with dropout 0.6", _neurons_per_frequency, low=2, of=_MUCH),
            Check("frequencies over ⌈p/2⌉ with dropout 0.6", _frequencies, low=0.9, high=1, of=_MUCH),
            seen_before="The check first took the mean number of neurons to a frequency, which was 9. It now takes the "
            "smallest, which says more.",
        ),
    ),
)
