"""Figure 22: training curves in three phases, without a norm."""

from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.minibatches import draw_three_phases, phase_specs, phases_claim
from grokscope.experiments.scale import Scale


def needs(scale: Scale) -> Needs:
    """Three networks."""
    return Needs(networks=tuple(phase_specs("none").values()))


def draw(evidence: Evidence) -> Drawing:
    """Curves side by side."""
    return draw_three_phases(evidence, "none")


EXPERIMENT = Experiment(
    name="fig22",
    title="Training curves without a norm, in mini-batches",
    caption="Accuracies during training without a norm, on mini-batches of 64, at ξ = 0.3 and three data fractions α.",
    needs=needs,
    draw=draw,
    claims=(
        phases_claim(
            "minibatch-phases",
            22,
            "none",
            "Without a norm",
            note="At α = 0.5 the network is in Partial Inversion at step 2000 (train accuracy 0.87, seed 0), but "
            "memorises more and more and ends, at 0.94, beyond the 0.9 at which Table 2 speaks of Coexistence.",
        ),
    ),
)
