"""Figure 29: phase diagrams of quadratic networks that are ten times as wide."""

from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.diagrams import drawing_of
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.paper.fig03 import CORRUPTIONS, DATA_FRACTIONS, WEIGHT_DECAY, with_decay
from grokscope.experiments.quantities.regions import GENERALISING
from grokscope.experiments.scale import Scale
from grokscope.phases import Phase
from grokscope.spec import RunSpec
from grokscope.sweeps.plan import Axis, Plan

WIDTH = 5000
DECAYS = (0, 15)  # of Figure 3's: none, and the one with which most networks generalise there
WIDE = Plan(
    "fig29",
    RunSpec().updated({"model.width": WIDTH}),
    (DATA_FRACTIONS, CORRUPTIONS, Axis.over("optimizer.weight_decay", DECAYS)),
)


def needs(scale: Scale) -> Needs:
    """One diagram."""
    return Needs(diagrams=(WIDE,))


def _coexistence(evidence: Evidence, plan: Plan) -> float:
    return with_decay(evidence, 0, plan).share(Phase.COEXISTENCE)


def _difference(evidence: Evidence, weight_decay: float) -> float:
    """By how much larger the share that generalises is with the paper's usual width."""
    usual, wide = with_decay(evidence, weight_decay), with_decay(evidence, weight_decay, WIDE)
    return usual.share(*GENERALISING) - wide.share(*GENERALISING)


EXPERIMENT = Experiment(
    name="fig29",
    title="Phase diagrams of wide quadratic networks",
    caption="As Figure 3 (a), with N = 5000 neurons, or as many as the scale allows.",
    needs=needs,
    draw=drawing_of(WIDE),
    claims=(
        Claim(
            "wide-no-partial-inversion",
            "Appendix O, Figure 29",
            "Without weight decay, wide quadratic networks have room to memorise: no Partial Inversion, and less "
            "Coexistence than at the usual width.",
            lambda scale: Needs(diagrams=(WEIGHT_DECAY, WIDE)),
            (
                Check(
                    "share of Partial Inversion at weight decay 0",
                    lambda e: with_decay(e, 0, WIDE).share(Phase.PARTIAL_INVERSION),
                    high=0.01,
                ),
                Check(
                    "share of Coexistence at weight decay 0, usual width minus wide",
                    lambda e: _coexistence(e, WEIGHT_DECAY) - _coexistence(e, WIDE),
                    low=0.03,
                ),
            ),
        ),
        Claim(
            "wide-generalises-slightly-worse",
            "Appendix O, Figure 29",
            "With weight decay, wide quadratic networks generalise in a little less of the plane.",
            lambda scale: Needs(diagrams=(WEIGHT_DECAY, WIDE)),
            (
                Check(
                    "share that generalises at weight decay 15, usual width minus wide",
                    lambda e: _difference(e, 15),
                    low=0,
                    high=0.2,
                ),
            ),
            note="At the quick scale (N = 900 in place of 5000, beside 300; 5 × 5 cells) wide networks generalise "
            "in one cell more: at α = 0.3 and ξ = 0.2.",
        ),
    ),
)
