"""Figure 4: how weight decay and dropout move neurons from low to high IPR."""

from collections.abc import Callable

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure

from grokscope.arrays import Int64Array
from grokscope.experiments import tables
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.paper import fig01
from grokscope.experiments.scale import Scale
from grokscope.measure import neuron_waves
from grokscope.plots import STYLE
from grokscope.plots.runs import draw_ipr_histogram
from grokscope.spec import RunSpec

DROPOUTS = (0.0, 0.3, 0.6)  # of Figures 3b and 19; without any it is the network without weight decay
_PERIODIC = 0.5  # between the modes of the histograms


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


def ipr_share(evidence: Evidence, spec: RunSpec, low: float, high: float) -> float:
    """The fraction of all neurons whose IPR lies between these; the dead have none."""
    neurons = evidence.network(spec).neurons
    if neurons is None:
        return float("nan")
    return float(np.mean((neurons.neuron_ipr >= low) & (neurons.neuron_ipr < high)))


def _share(spec: RunSpec, low: float, high: float) -> Callable[[Evidence], float]:
    return lambda evidence: ipr_share(evidence, spec, low, high)


def _fewer_low(first: RunSpec, second: RunSpec) -> Callable[[Evidence], float]:
    return lambda evidence: ipr_share(evidence, first, 0, 0.1) - ipr_share(evidence, second, 0, 0.1)


def _more_periodic(first: RunSpec, second: RunSpec) -> Callable[[Evidence], float]:
    return lambda evidence: ipr_share(evidence, second, _PERIODIC, 1.01) - ipr_share(evidence, first, _PERIODIC, 1.01)


def _higher(first: RunSpec, second: RunSpec) -> Callable[[Evidence], float]:
    """By how much the mean IPR grows from one network to another."""
    return lambda evidence: evidence.network(second).final.mean_ipr - evidence.network(first).final.mean_ipr


def _neurons_per_frequency(evidence: Evidence, spec: RunSpec) -> float:
    """How many periodic neurons share a frequency that they have, at least."""
    counts = _periodic_by_frequency(evidence, spec)
    return float(counts[counts > 0].min()) if counts.any() else float("nan")


def _frequencies(evidence: Evidence, spec: RunSpec) -> float:
    """How many frequencies the periodic neurons have, as a fraction of ⌈p/2⌉."""
    counts = _periodic_by_frequency(evidence, spec)
    return float((counts > 0).sum() / -(-evidence.network(spec).spec.task.modulus // 2))


def _periodic_by_frequency(evidence: Evidence, spec: RunSpec) -> Int64Array:
    result = evidence.network(spec)
    waves = neuron_waves(result.spec.model, result.trained_weights(), result.spec.task)
    return waves.counts(waves.spectra.neuron_ipr > _PERIODIC)


_NONE, _FIVE, _FIFTEEN = fig01.specs()
_, _SOME, _MUCH = dropout_specs()


def _claim(
    name: str, paper: str, statement: str, networks: tuple[RunSpec, ...], *checks: Check, note: str = ""
) -> Claim:
    return Claim(name, paper, statement, lambda scale: Needs(networks=networks, seeds=3), checks, note)


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
            (_NONE,),
            Check("neurons with IPR below 0.1", _share(_NONE, 0, 0.1), low=0.5, high=0.8),
            Check("neurons with IPR from 0.2 to 0.6", _share(_NONE, 0.2, 0.6), high=0.1),
            Check("neurons with IPR above 0.7", _share(_NONE, 0.7, 1.01), low=0.15, high=0.45),
        ),
        _claim(
            "decay-shifts-ipr",
            "Section 3.1, Figure 4(a)",
            "More weight decay leaves fewer neurons of low IPR and raises the mean.",
            (_NONE, _FIVE, _FIFTEEN),
            Check("mean IPR at wd 5, above wd 0", _higher(_NONE, _FIVE), low=0.05),
            Check("mean IPR at wd 15, above wd 5", _higher(_FIVE, _FIFTEEN), low=0.05),
            Check("fewer neurons below 0.1 at wd 5 than at wd 0", _fewer_low(_NONE, _FIVE), low=0.05),
            Check("fewer neurons below 0.1 at wd 15 than at wd 5", _fewer_low(_FIVE, _FIFTEEN), low=0.1),
        ),
        _claim(
            "dropout-inverts",
            "Abstract (iii), Section 2, Figure 3(b)",
            "Dropout too makes a network ignore corrupted labels, first some of them and then all.",
            (_SOME, _MUCH),
            Check("test accuracy with dropout 0.3", lambda e: e.network(_SOME).final.test_accuracy, low=0.9),
            Check("train accuracy with dropout 0.3", lambda e: e.network(_SOME).final.train_accuracy, high=0.9),
            Check("test accuracy with dropout 0.6", lambda e: e.network(_MUCH).final.test_accuracy, low=0.9),
            Check("train accuracy with dropout 0.6", lambda e: e.network(_MUCH).final.train_accuracy, high=0.7),
        ),
        _claim(
            "dropout-shifts-ipr",
            "Section 2.1, Figure 4(b)",
            "More dropout leaves fewer neurons of low IPR and raises the mean.",
            (_NONE, _SOME, _MUCH),
            Check("mean IPR with dropout 0.3, above none", _higher(_NONE, _SOME), low=0.05),
            Check("mean IPR with dropout 0.6, above 0.3", _higher(_SOME, _MUCH), low=0.05),
            Check("fewer neurons below 0.1 with dropout 0.6 than with none", _fewer_low(_NONE, _MUCH), low=0.1),
        ),
        _claim(
            "neurons-are-converted",
            "Section 1, Abstract (iv), Figure 4",
            "Weight decay and dropout do not only remove memorising neurons: generalising ones become more numerous.",
            (_NONE, _FIVE, _FIFTEEN, _SOME, _MUCH),
            Check("share of all neurons with IPR above 0.5, wd 5 minus wd 0", _more_periodic(_NONE, _FIVE), low=0.05),
            Check(
                "share of all neurons with IPR above 0.5, wd 15 minus wd 5", _more_periodic(_FIVE, _FIFTEEN), low=0.05
            ),
            Check("the same, dropout 0.3 minus none", _more_periodic(_NONE, _SOME), low=0.05),
            Check("the same, dropout 0.6 minus 0.3", _more_periodic(_SOME, _MUCH), low=0.05),
        ),
        _claim(
            "memorising-neurons-vanish",
            "Section 2.1, Figure 4 (right)",
            "In Full Inversion hardly any neuron of low IPR is left, whether weight decay or dropout led there.",
            (_FIFTEEN, _MUCH),
            Check("neurons with IPR below 0.1 at wd 15", _share(_FIFTEEN, 0, 0.1), high=0.1),
            Check("neurons with IPR below 0.1 with dropout 0.6", _share(_MUCH, 0, 0.1), high=0.1),
            note="With dropout 0.6 some 15 % of the neurons keep a low IPR, three times as many as at weight decay 15, "
            "though the corrupted labels are not memorised (train accuracy 0.66).",
        ),
        _claim(
            "redundant-frequencies",
            "Section 3.2",
            "Periodic neurons cover all ⌈p/2⌉ frequencies but the constant, and several share each of them.",
            (_FIFTEEN, _MUCH),
            Check("fewest neurons to a frequency at wd 15", lambda e: _neurons_per_frequency(e, _FIFTEEN), low=2),
            Check("frequencies over ⌈p/2⌉ at wd 15", lambda e: _frequencies(e, _FIFTEEN), low=0.9, high=1),
            Check("fewest neurons to a frequency with dropout 0.6", lambda e: _neurons_per_frequency(e, _MUCH), low=2),
            Check("frequencies over ⌈p/2⌉ with dropout 0.6", lambda e: _frequencies(e, _MUCH), low=0.9, high=1),
        ),
    ),
)
