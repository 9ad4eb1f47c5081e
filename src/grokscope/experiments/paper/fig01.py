"""Figure 1: training curves in three phases, with the IPR histograms that explain them."""

import math
from collections.abc import Callable, Sequence

from matplotlib.figure import Figure

from grokscope.experiments import tables
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.scale import Scale
from grokscope.measure import measure_logits
from grokscope.phases import HIGH_ACCURACY
from grokscope.plots import draw_runs
from grokscope.result import RunResult
from grokscope.spec import RunSpec

WEIGHT_DECAYS = (0.0, 5.0, 15.0)
BASE = RunSpec().updated({"task.data_fraction": 0.5, "task.corruption": 0.35})


def specs() -> list[RunSpec]:
    """The default setting at α = .5, ξ = .35, with three weight decays: Figures 4a, 6, 17, 18 and 23 have them too."""
    return [BASE.updated({"optimizer.weight_decay": decay}) for decay in WEIGHT_DECAYS]


def needs(scale: Scale) -> Needs:
    """Three networks."""
    return Needs(networks=tuple(specs()))


def draw(evidence: Evidence) -> Drawing:
    """Curves above, IPR histograms below."""
    results = evidence.networks(specs())
    return Drawing(picture(results), tables.curves(dict(zip(_titles(results), results, strict=True))))


def picture(results: Sequence[RunResult]) -> Figure:
    """The figure alone."""
    return draw_runs(results, _titles(results))


def _titles(results: Sequence[RunResult]) -> list[str]:
    return [f"weight decay {result.spec.optimizer.weight_decay:g}" for result in results]


COEXISTENCE, PARTIAL, FULL = specs()
# What happens early is over within tens of steps: the beginnings of the last two, measured often.
PARTIAL_EARLY, FULL_EARLY = (
    spec.updated({"training.steps": 200, "training.measure_every": 2}) for spec in (PARTIAL, FULL)
)


def _claim(name: str, paper: str, statement: str, *checks: Check) -> Claim:
    return Claim(name, paper, statement, lambda scale: Needs(networks=tuple(specs()), seeds=3), checks)


def _gap(spec: RunSpec) -> Callable[[Evidence], float]:
    return lambda evidence: evidence.network(spec).final.test_accuracy - evidence.network(spec).final.train_accuracy


def _recovered_of_the_rest(evidence: Evidence) -> float:
    """Of the corrupted examples whose drawn label is not the answer, those with the true answer, at wd 5."""
    result = evidence.network(PARTIAL)
    table = measure_logits(result.module(), result.dataset())
    rest = table.corrupted & (table.predicted != table.label)
    return float((table.predicted == table.truth)[rest].mean()) if rest.any() else math.nan


def _distance_from_plateau(evidence: Evidence) -> float:
    """The largest distance of train accuracy from 1 − ξ in the second half of training, at wd 15."""
    result = evidence.network(FULL)
    clean = 1 - result.dataset().corruption
    late = [row for row in result.curve if row.step > result.spec.training.steps / 2]
    return max((abs(row.train_accuracy - clean) for row in late), default=math.nan)


def _steps_of_unlearning(evidence: Evidence) -> float:
    """From the last step with a high train accuracy to one near that of clean labels, at wd 15; NaN without both."""
    rows = sorted([*evidence.network(FULL_EARLY).curve, *evidence.network(FULL).curve], key=lambda row: row.step)
    high = [row.step for row in rows if row.train_accuracy >= HIGH_ACCURACY]
    clean = 1 - evidence.network(FULL).dataset().corruption
    after = [row.step for row in rows if high and row.step > high[-1] and row.train_accuracy <= clean + 0.05]
    return float(after[0] - high[-1]) if after else math.nan


def _both_high(early: RunSpec, whole: RunSpec) -> Callable[[Evidence], float]:
    """The highest value that train and test accuracy both reach at one step."""

    def value(evidence: Evidence) -> float:
        rows = [*evidence.network(early).curve, *evidence.network(whole).curve]
        return max(min(row.train_accuracy, row.test_accuracy) for row in rows)

    return value


EXPERIMENT = Experiment(
    name="fig01",
    title="Training curves in three phases",
    caption="Accuracies during training at α = 0.5 and ξ = 0.35, and the IPR of the neurons at the end. Without weight "
    "decay the network finds the rule and memorises the corrupted labels; with more of it, it memorises fewer or none "
    "and answers with the true label instead.",
    needs=needs,
    draw=draw,
    claims=(
        _claim(
            "coexistence",
            "Abstract (i), Figure 1(a)",
            "Without regularisation a network can memorise corrupted labels and generalise at once.",
            Check("test accuracy", lambda e: e.network(COEXISTENCE).final.test_accuracy, low=0.9),
            Check("corrupted accuracy", lambda e: e.network(COEXISTENCE).final.corrupted_accuracy, low=0.9),
        ),
        _claim(
            "partial-inversion",
            "Section 2, Figure 1(b), Table 2",
            "With weight decay 5 the network generalises and memorises only some of the corrupted labels.",
            Check("test accuracy at wd 5", lambda e: e.network(PARTIAL).final.test_accuracy, low=0.95),
            Check("train accuracy at wd 5", lambda e: e.network(PARTIAL).final.train_accuracy, low=0.7, high=0.9),
            Check(
                "corrupted accuracy at wd 5", lambda e: e.network(PARTIAL).final.corrupted_accuracy, low=0.1, high=0.9
            ),
        ),
        _claim(
            "full-inversion",
            "Section 2, Figure 1(c), Table 2",
            "With weight decay 15 the network generalises perfectly and memorises no corrupted label.",
            Check("test accuracy at wd 15", lambda e: e.network(FULL).final.test_accuracy, low=0.99),
            Check("train accuracy at wd 15", lambda e: e.network(FULL).final.train_accuracy, high=0.7),
            Check("corrupted accuracy at wd 15", lambda e: e.network(FULL).final.corrupted_accuracy, high=0.1),
        ),
        _claim(
            "negative-gap",
            "Section 2, Figure 1(b, c)",
            "Weight decay makes the network better on the test set than on the data it was trained on.",
            Check("test minus train accuracy at wd 5", _gap(PARTIAL), low=0.05),
            Check("test minus train accuracy at wd 15", _gap(FULL), low=0.25),
        ),
        _claim(
            "true-labels-recovered",
            "Section 2, Figure 1(b, c)",
            "On the corrupted examples that it does not memorise, the network answers with the true label.",
            Check("recovered, of those not memorised, at wd 5", _recovered_of_the_rest, low=0.9),
            Check("recovered at wd 15", lambda e: e.network(FULL).final.recovered_accuracy, low=0.9),
        ),
        _claim(
            "train-plateau",
            "Section 2, Figure 1(c)",
            "In Full Inversion train accuracy settles at the fraction of labels that are not corrupted.",
            Check("largest distance from 1 − ξ in the second half, at wd 15", _distance_from_plateau, high=0.05),
        ),
        Claim(
            "unlearning-sudden",
            "Abstract",
            "With weight decay 15 train accuracy drops from high to the fraction of clean labels at once.",
            lambda scale: Needs(networks=(FULL, FULL_EARLY), seeds=3),
            (Check("steps from a train accuracy of 90 % to 1 − ξ + 0.05", _steps_of_unlearning, high=200),),
        ),
        Claim(
            "two-stages",
            "Abstract",
            "With weight decay the network first reaches high train and test accuracy, and then unlearns the "
            "corrupted labels, so that train accuracy drops to the fraction of clean ones.",
            lambda scale: Needs(networks=(PARTIAL, FULL, PARTIAL_EARLY, FULL_EARLY), seeds=3),
            (
                Check("both accuracies reach, at wd 5", _both_high(PARTIAL_EARLY, PARTIAL), low=0.9),
                Check("both accuracies reach, at wd 15", _both_high(FULL_EARLY, FULL), low=0.9),
                Check("train accuracy in the end at wd 15", lambda e: e.network(FULL).final.train_accuracy, high=0.7),
            ),
        ),
    ),
)
