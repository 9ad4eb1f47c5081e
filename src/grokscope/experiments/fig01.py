"""Figure 1: training curves in three phases, with the IPR histograms that explain them."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from grokscope.experiments import tables
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.scale import Scale
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


def _claim(name: str, paper: str, statement: str, *checks: Check) -> Claim:
    return Claim(name, paper, statement, lambda scale: Needs(networks=tuple(specs()), seeds=3), checks)


COEXISTENCE, PARTIAL, FULL = specs()

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
    ),
)
