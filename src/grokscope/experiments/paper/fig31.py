"""Figure 31: phase diagrams of modular multiplication."""

from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.diagrams import drawing_of
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.paper.fig01 import FULL
from grokscope.experiments.paper.fig03 import WEIGHT_DECAY as ADDITION
from grokscope.experiments.paper.fig03 import with_decay
from grokscope.experiments.quantities.regions import GENERALISING, agreement
from grokscope.experiments.scale import Scale
from grokscope.measure import neuron_spectra
from grokscope.spec import RunSpec
from grokscope.sweeps.plan import Plan
from grokscope.tasks import ModularTask, Operation

DECAYS = (0, 5, 15, 20)
MULTIPLICATION = Plan("fig31", RunSpec().updated({"task.operation": "multiply"}), ADDITION.axes)
NETWORK = FULL.updated({"task.operation": "multiply"})


def needs(scale: Scale) -> Needs:
    """One diagram of four panels."""
    return Needs(diagrams=(MULTIPLICATION,))


def _agreement(evidence: Evidence) -> float:
    """The share of cells of all panels that end as with addition; all panels are of one size."""
    panels = [(with_decay(evidence, decay), with_decay(evidence, decay, MULTIPLICATION)) for decay in DECAYS]
    return sum(agreement(*pair) for pair in panels) / len(panels)


def _largest_difference(evidence: Evidence) -> float:
    """Between the shares that generalise with addition and with multiplication, over the panels."""
    pairs = [(with_decay(evidence, decay), with_decay(evidence, decay, MULTIPLICATION)) for decay in DECAYS]
    return max(abs(plus.share(*GENERALISING) - times.share(*GENERALISING)) for plus, times in pairs)


def _mean_ipr(evidence: Evidence, operation: Operation) -> float:
    """With the waves of an operation."""
    result = evidence.network(NETWORK)
    task = ModularTask(operation=operation, modulus=result.spec.task.modulus)
    spectra = neuron_spectra(result.spec.model, result.trained_weights(), task)
    assert spectra is not None
    return spectra.mean_ipr


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
            lambda scale: Needs(diagrams=(ADDITION, MULTIPLICATION)),
            (
                Check("share of cells with the same phase", _agreement, low=0.85),
                Check("largest difference of the shares that generalise", _largest_difference, high=0.05),
            ),
        ),
        Claim(
            "multiplication-logarithmic-waves",
            "ours, on Appendix P",
            "Networks that multiply learn the same waves, in the discrete logarithm of the numbers.",
            lambda scale: Needs(networks=(NETWORK,), seeds=3),
            (
                Check("test accuracy", lambda e: e.network(NETWORK).final.test_accuracy, low=0.9),
                Check(
                    "mean IPR in the order of the logarithm",
                    lambda e: _mean_ipr(e, "multiply"),
                    low=0.5,
                ),
                Check(
                    "mean IPR in the order of the numbers",
                    lambda e: _mean_ipr(e, "add"),
                    high=0.2,
                ),
            ),
        ),
    ),
)
