"""Figure 31: phase diagrams of modular multiplication."""

from collections.abc import Callable

from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.diagrams import drawing_of
from grokscope.experiments.evidence import Needs
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.paper.fig01 import FULL
from grokscope.experiments.paper.fig03 import WEIGHT_DECAY as ADDITION
from grokscope.experiments.paper.fig03 import with_decay
from grokscope.experiments.quantities.curves import final
from grokscope.experiments.quantities.regions import GENERALISING, Region, Shares, agreement
from grokscope.experiments.scale import Scale
from grokscope.measure import neuron_spectra
from grokscope.result import RunResult
from grokscope.spec import RunSpec
from grokscope.sweeps.plan import Plan
from grokscope.tasks import ModularTask, Operation

DECAYS = (0, 5, 15, 20)
MULTIPLICATION = Plan("fig31", RunSpec().updated({"task.operation": "multiply"}), ADDITION.axes)
NETWORK = FULL.updated({"task.operation": "multiply"})


def needs(scale: Scale) -> Needs:
    """One diagram of four panels."""
    return Needs(diagrams=(MULTIPLICATION,))


_BOTH = [panel for decay in DECAYS for panel in (with_decay(decay), with_decay(decay, MULTIPLICATION))]


def _pairs(panels: tuple[Region, ...]) -> list[tuple[Region, Region]]:
    """Addition and multiplication at each weight decay."""
    return list(zip(panels[::2], panels[1::2], strict=True))


def _agreement(*panels: Region) -> float:
    """The share of cells of all panels that end as with addition; all panels are of one size."""
    return sum(agreement(*pair) for pair in _pairs(panels)) / len(_pairs(panels))


def _largest_difference(*panels: Region) -> float:
    """The largest difference, over the panels, between the shares that generalise with addition and multiplication."""
    return max(abs(plus.share(*GENERALISING) - times.share(*GENERALISING)) for plus, times in _pairs(panels))


def _mean_ipr(operation: Operation) -> Callable[[RunResult], float]:
    """With the waves of an operation."""

    def value(result: RunResult) -> float:
        task = ModularTask(operation=operation, modulus=result.spec.task.modulus)
        spectra = neuron_spectra(result.spec.model, result.trained_weights(), task)
        assert spectra is not None
        return spectra.mean_ipr

    return value


EXPERIMENT = Experiment(
    name="fig31",
    title="Phase diagrams of modular multiplication",
    caption="As Figure 3 (a), for the rule z = mn mod p.",
    needs=needs,
    draw=drawing_of(MULTIPLICATION),
    claims=(
        Claim(
            "multiplication-same-phases",
            "Appendix P, Figure 31",
            "The phase diagrams of multiplication are those of addition.",
            (
                Check("share of cells with the same phase", _agreement, low=0.85, of=_BOTH),
                Check(
                    "largest difference of the shares that generalise",
                    Shares(_largest_difference, difference=True),
                    high=0.05,
                    of=_BOTH,
                ),
            ),
        ),
        Claim(
            "multiplication-logarithmic-waves",
            "ours, on Appendix P",
            "Networks that multiply learn the same waves, in the discrete logarithm of the numbers.",
            (
                Check("test accuracy", final("test_accuracy"), low=0.9, of=NETWORK),
                Check(
                    "mean IPR in the order of the logarithm",
                    _mean_ipr("multiply"),
                    low=0.5,
                    of=NETWORK,
                ),
                Check(
                    "mean IPR in the order of the numbers",
                    _mean_ipr("add"),
                    high=0.2,
                    of=NETWORK,
                ),
            ),
        ),
    ),
)
