"""Figure 27: phase diagrams of ReLU networks with weight decay."""

from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.diagrams import drawing_of
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.paper.fig03 import CORRUPTIONS, DATA_FRACTIONS, with_decay
from grokscope.experiments.paper.fig03 import WEIGHT_DECAY as QUADRATIC
from grokscope.experiments.quantities.regions import GENERALISING, INVERTING
from grokscope.experiments.scale import Scale
from grokscope.phases import Phase
from grokscope.spec import RunSpec
from grokscope.sweeps.plan import Axis, Plan

BASE = RunSpec().updated({"model.activation": "relu"})
DECAYS = (0, 5, 15, 20)  # those of Figure 3, as the paper states none
RELU = Plan(
    "fig27",
    BASE,
    (DATA_FRACTIONS, CORRUPTIONS, Axis.over("optimizer.weight_decay", DECAYS)),
)


def needs(scale: Scale) -> Needs:
    """One diagram."""
    return Needs(diagrams=(RELU,))


def _difference(evidence: Evidence, weight_decay: float) -> float:
    """By how much larger the share that generalises is with quadratic networks."""
    quadratic, relu = with_decay(evidence, weight_decay), with_decay(evidence, weight_decay, RELU)
    return quadratic.share(*GENERALISING) - relu.share(*GENERALISING)


EXPERIMENT = Experiment(
    name="fig27",
    title="Phase diagrams of ReLU networks, with weight decay",
    caption="As Figure 3 (a), with ReLU in place of the square.",
    needs=needs,
    draw=drawing_of(RELU),
    claims=(
        Claim(
            "relu-weight-decay",
            "Appendix N, Figure 27",
            "Weight decay does to ReLU networks what it does to quadratic ones: more of them generalise and invert.",
            needs,
            (
                Check(
                    "share that generalises, weight decay 5 minus 0",
                    lambda e: with_decay(e, 5, RELU).share(*GENERALISING) - with_decay(e, 0, RELU).share(*GENERALISING),
                    low=0.03,
                ),
                Check(
                    "share of Inversion, weight decay 15 minus 0",
                    lambda e: with_decay(e, 15, RELU).share(*INVERTING) - with_decay(e, 0, RELU).share(*INVERTING),
                    low=0.1,
                ),
            ),
        ),
        Claim(
            "relu-no-forgetting",
            "Appendix N, Figure 27",
            "ReLU networks do not forget the rule, whatever the weight decay.",
            needs,
            (
                Check(
                    "largest share of Forgetting at any weight decay",
                    lambda e: max(with_decay(e, decay, RELU).share(Phase.FORGETTING) for decay in DECAYS),
                    high=0.02,
                ),
            ),
        ),
        Claim(
            "relu-needs-more-regularisation",
            "Appendix N, Figure 27",
            "Without weight decay, or with the same moderate one, fewer ReLU networks generalise than quadratic ones.",
            lambda scale: Needs(diagrams=(QUADRATIC, RELU)),
            (
                Check(
                    "share that generalises at weight decay 0, quadratic minus ReLU",
                    lambda e: _difference(e, 0),
                    low=0.05,
                ),
                Check(
                    "share that generalises at weight decay 5, quadratic minus ReLU",
                    lambda e: _difference(e, 5),
                    low=0.03,
                ),
            ),
            note="At the quick scale (p = 59, 5 × 5 cells) a single cell is 0.04, and one cell it is that a quadratic "
            "network without weight decay generalises in and one with ReLU does not.",
        ),
    ),
)
