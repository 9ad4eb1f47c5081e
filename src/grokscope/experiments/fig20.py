"""Figure 20: training curves in three phases, with BatchNorm."""

from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.minibatches import draw_three_phases, phase_specs, phases_claim
from grokscope.experiments.scale import Scale


def needs(scale: Scale) -> Needs:
    """Three networks."""
    return Needs(networks=tuple(phase_specs("batch").values()))


def draw(evidence: Evidence) -> Drawing:
    """Curves side by side."""
    return draw_three_phases(evidence, "batch")


EXPERIMENT = Experiment(
    name="fig20",
    title="Training curves with BatchNorm, in mini-batches",
    caption="Accuracies during training with BatchNorm, on mini-batches of 64, at ξ = 0.3 and three data fractions α.",
    needs=needs,
    draw=draw,
    claims=(
        phases_claim(
            "batchnorm-phases",
            20,
            "batch",
            "With BatchNorm",
            note="At α = 0.5 the network is in Partial Inversion at step 2000 (train accuracy 0.84, seed 0), but "
            "memorises more and more and ends, at 0.92, beyond the 0.9 at which Table 2 speaks of Coexistence.",
        ),
    ),
)
