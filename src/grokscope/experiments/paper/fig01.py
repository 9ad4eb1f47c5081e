"""Figure 1: training curves in three phases, with the IPR histograms that explain them."""

import math
from collections.abc import Sequence
from typing import Unpack

from matplotlib.figure import Figure

from grokscope.experiments import tables
from grokscope.experiments.claim import SEEN_AT_QUICK_SCALE, Check, Claim, Remarks
from grokscope.experiments.dense import BANDS, SEEDS, densely
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.quantities.curves import distance_from_clean, final
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
    return Needs(networks=tuple(map(densely, specs())), seeds=SEEDS)


def draw(evidence: Evidence) -> Drawing:
    """Curves above, IPR histograms below."""
    networks = [evidence.seeds_of(densely(spec), SEEDS) for spec in specs()]
    first = [seeds[0] for seeds in networks]
    figure = draw_runs(first, _titles(first), other_seeds=[seeds[1:] for seeds in networks])
    return Drawing(figure, tables.curves_of_seeds(dict(zip(_titles(first), networks, strict=True))))


def picture(results: Sequence[RunResult]) -> Figure:
    """The figure of one seed alone."""
    return draw_runs(results, _titles(results))


def _titles(results: Sequence[RunResult]) -> list[str]:
    return [f"weight decay {result.spec.optimizer.weight_decay:g}" for result in results]


def name_of(result: RunResult) -> str:
    """The phase of a network, which is what figures compare, and the weight decay that made it."""
    return f"{result.outcome} (weight decay {result.spec.optimizer.weight_decay:g})"


COEXISTENCE, PARTIAL, FULL = specs()
NARROW = COEXISTENCE.updated({"model.width": 50})  # as many neurons as dropout 0.9 leaves
# What happens early is over within tens of steps: the beginnings of the last two, measured often.
PARTIAL_EARLY, FULL_EARLY = (
    spec.updated({"training.steps": 200, "training.measure_every": 2}) for spec in (PARTIAL, FULL)
)


def _claim(name: str, paper: str, statement: str, *checks: Check, **remarks: Unpack[Remarks]) -> Claim:
    return Claim(name, paper, statement, checks, beside=specs(), **remarks)


def _gap(result: RunResult) -> float:
    return result.final.test_accuracy - result.final.train_accuracy


def _both_in_the_end(result: RunResult) -> float:
    return min(result.final.test_accuracy, result.final.corrupted_accuracy)


def _recovered_of_the_rest(result: RunResult) -> float:
    """Of the corrupted examples whose drawn label is not the answer, the share with the true answer."""
    table = measure_logits(result.module(), result.dataset())
    rest = table.corrupted & (table.predicted != table.label)
    return float((table.predicted == table.truth)[rest].mean()) if rest.any() else math.nan


def _distance_from_plateau(result: RunResult) -> float:
    """The largest distance of train accuracy from 1 − ξ in the second half of training."""
    late = [row for row in result.curve if row.step > result.spec.training.steps / 2]
    return max((distance_from_clean(row.train_accuracy, result) for row in late), default=math.nan)


def _steps_of_unlearning(early: RunResult, whole: RunResult) -> float:
    """From the last step with a high train accuracy to the first one near that of clean labels; NaN without both."""
    rows = sorted([*early.curve, *whole.curve], key=lambda row: row.step)
    high = [row.step for row in rows if row.train_accuracy >= HIGH_ACCURACY]
    clean = 1 - whole.dataset().corruption
    after = [row.step for row in rows if high and row.step > high[-1] and row.train_accuracy <= clean + 0.05]
    return float(after[0] - high[-1]) if after else math.nan


def _both_high(early: RunResult, whole: RunResult) -> float:
    """The highest value that train and test accuracy both reach at one step."""
    return max(min(row.train_accuracy, row.test_accuracy) for row in (*early.curve, *whole.curve))


EXPERIMENT = Experiment(
    name="fig01",
    title="Training curves in three phases",
    caption="Accuracies during training at α = 0.5 and ξ = 0.35, and the IPR of the neurons at the end. Without "
    "weight decay the network finds the rule and memorises the corrupted labels; with weight decay it memorises "
    "fewer of them or none, and answers with the true label instead. "
    f"{BANDS} The IPR is that of the first seed.",
    needs=needs,
    draw=draw,
    claims=(
        _claim(
            "coexistence",
            "Abstract (i), Figure 1(a)",
            "Without regularisation a network can memorise corrupted labels and generalise at once.",
            Check("test accuracy", final("test_accuracy"), low=0.9, of=COEXISTENCE),
            Check("corrupted accuracy", final("corrupted_accuracy"), low=0.9, of=COEXISTENCE),
        ),
        Claim(
            "coexistence-needs-width",
            "Section 1",
            "It takes a sufficiently large network to memorise corrupted labels and generalise at once: 500 neurons do "
            "both, and 50 do not.",
            (
                Check("smaller of test and corrupted accuracy, N 500", _both_in_the_end, low=0.9, of=COEXISTENCE),
                Check("smaller of test and corrupted accuracy, N 50", _both_in_the_end, high=0.9, of=NARROW),
            ),
            stated="2026-11-17",
            seen_before="Stated after the network of 500 neurons had been measured.",
        ),
        _claim(
            "partial-inversion",
            "Section 2, Figure 1(b), Table 2",
            "With weight decay 5 the network generalises and memorises only some of the corrupted labels.",
            Check("test accuracy at wd 5", final("test_accuracy"), low=0.95, of=PARTIAL),
            Check("train accuracy at wd 5", final("train_accuracy"), low=0.7, high=0.9, of=PARTIAL),
            Check("corrupted accuracy at wd 5", final("corrupted_accuracy"), low=0.1, high=0.9, of=PARTIAL),
        ),
        _claim(
            "full-inversion",
            "Section 2, Figure 1(c), Table 2",
            "With weight decay 15 the network generalises perfectly and memorises no corrupted label.",
            Check("test accuracy at wd 15", final("test_accuracy"), low=0.99, of=FULL),
            Check("train accuracy at wd 15", final("train_accuracy"), high=0.7, of=FULL),
            Check("corrupted accuracy at wd 15", final("corrupted_accuracy"), high=0.1, of=FULL),
        ),
        _claim(
            "negative-gap",
            "Section 2, Figure 1(b, c)",
            "Weight decay makes the network better on the test set than on the data it was trained on.",
            Check("test minus train accuracy at wd 5", _gap, low=0.05, of=PARTIAL),
            Check("test minus train accuracy at wd 15", _gap, low=0.25, of=FULL),
        ),
        _claim(
            "true-labels-recovered",
            "Section 2, Figure 1(b, c)",
            "On the corrupted examples that it does not memorise, the network answers with the true label.",
            Check("recovered, of those not memorised, at wd 5", _recovered_of_the_rest, low=0.9, of=PARTIAL),
            Check("recovered at wd 15", final("recovered_accuracy"), low=0.9, of=FULL),
            seen_before="The first result, 1.02, showed that the formula counted drawn labels that happen to be true "
            "twice. It was corrected; the bound stayed.",
        ),
        _claim(
            "train-plateau",
            "Section 2, Figure 1(c)",
            "In Full Inversion train accuracy settles at the fraction of labels that are not corrupted.",
            Check(
                "largest distance from 1 − ξ in the second half, at wd 15", _distance_from_plateau, high=0.05, of=FULL
            ),
        ),
        Claim(
            "unlearning-sudden",
            "Abstract",
            "With weight decay 15 train accuracy drops from high to the fraction of clean labels at once.",
            (
                Check(
                    "steps from a train accuracy of 90 % to 1 − ξ + 0.05",
                    _steps_of_unlearning,
                    high=200,
                    of=(FULL_EARLY, FULL),
                ),
            ),
            seen_before=SEEN_AT_QUICK_SCALE,
        ),
        Claim(
            "two-stages",
            "Abstract",
            "With weight decay the network first reaches high train and test accuracy, and then unlearns the "
            "corrupted labels, so that train accuracy drops to the fraction of clean ones.",
            (
                Check("both accuracies reach, at wd 5", _both_high, low=0.9, of=(PARTIAL_EARLY, PARTIAL)),
                Check("both accuracies reach, at wd 15", _both_high, low=0.9, of=(FULL_EARLY, FULL)),
                Check("train accuracy in the end at wd 15", final("train_accuracy"), high=0.7, of=FULL),
            ),
        ),
    ),
)
