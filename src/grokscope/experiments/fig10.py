"""Figure 10: phase diagrams without any norm, for three batch sizes."""

from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.diagrams import drawing_of
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.minibatches import diagram_plan
from grokscope.experiments.regions import GENERALISING, INVERTING, share_gain
from grokscope.experiments.scale import Scale
from grokscope.phases import Phase

PLAN = diagram_plan("fig10", "none")
_SMALL, _MIDDLE, _LARGE = 0, 1, 2  # panels


def needs(scale: Scale) -> Needs:
    """One diagram of three panels."""
    return Needs(diagrams=(PLAN,))


def _growth(evidence: Evidence, phases: tuple[Phase, ...], smaller: int, larger: int) -> float:
    """By how much the share of the phases is larger with the smaller batches."""
    panels = evidence.diagram(PLAN).panels
    return share_gain([panels[smaller]], [panels[larger]], phases)


EXPERIMENT = Experiment(
    name="fig10",
    title="Phase diagrams with mini-batches, by batch size",
    caption="The phase in which a network without a norm, weight decay or dropout ends, over the data fraction α and "
    "the corruption fraction ξ, for three batch sizes. The number of steps and the learning rate change with the batch "
    "size so that all networks see equally many examples.",
    needs=needs,
    draw=drawing_of(PLAN),
    claims=(
        Claim(
            "small-batches-invert",
            "Section 2.1, Appendix F, Figure 10",
            "The smaller the batches, the more of the diagram is inverted, without any explicit regularisation.",
            needs,
            (
                Check("inverted, B 8 minus B 256", lambda e: _growth(e, INVERTING, _SMALL, _LARGE), low=0.03),
                Check("inverted, B 64 minus B 256", lambda e: _growth(e, INVERTING, _MIDDLE, _LARGE), low=0),
                Check("inverted, B 8 minus B 64", lambda e: _growth(e, INVERTING, _SMALL, _MIDDLE), low=0),
            ),
            note="At the quick scale (p = 59, 5 × 5 cells) one cell is inverted with batches of 8, and none with 64 or "
            "256, which leaves nothing to compare between these.",
        ),
        Claim(
            "small-batches-generalise",
            "Appendix F, Figure 10",
            "Smaller batches make more of the networks generalise.",
            needs,
            (Check("generalising, B 8 minus B 256", lambda e: _growth(e, GENERALISING, _SMALL, _LARGE), low=0.03),),
            note="At the quick scale (p = 59, 5 × 5 cells) the same seven cells generalise with all three batch sizes; "
            "what a batch of 8 changes is that one of them is inverted. At α = 0.3 and ξ = 0 its test accuracy is "
            "0.17, and 0.03 with a batch of 256.",
        ),
    ),
)
