"""Figure 27: phase diagrams of ReLU networks with weight decay."""

from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.diagrams import drawing_of
from grokscope.experiments.evidence import Needs
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.paper.fig03 import CORRUPTIONS, DATA_FRACTIONS, with_decay
from grokscope.experiments.quantities.regions import GENERALISING, INVERTING, larger_share, largest_share
from grokscope.experiments.scale import Scale
from grokscope.phases import Phase
from grokscope.spec import RunSpec
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.plan import Plan

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


_SEEN = "The bounds were set after part of a trial with p = 47 at weight decays 0 and 5 had been seen."


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
            (
                Check(
                    "share that generalises, weight decay 5 minus 0",
                    larger_share(*GENERALISING),
                    low=0.03,
                    of=(with_decay(5, RELU), with_decay(0, RELU)),
                ),
                Check(
                    "share of Inversion, weight decay 15 minus 0",
                    larger_share(*INVERTING),
                    low=0.1,
                    of=(with_decay(15, RELU), with_decay(0, RELU)),
                ),
            ),
            seen_before=_SEEN,
        ),
        Claim(
            "relu-no-forgetting",
            "Appendix N, Figure 27",
            "ReLU networks do not forget the rule, whatever the weight decay.",
            (
                Check(
                    "largest share of Forgetting at any weight decay",
                    largest_share(Phase.FORGETTING),
                    high=0.02,
                    of=[with_decay(decay, RELU) for decay in DECAYS],
                ),
            ),
            seen_before=_SEEN,
        ),
        Claim(
            "relu-needs-more-regularisation",
            "Appendix N, Figure 27",
            "Without weight decay, or with the same moderate one, fewer ReLU networks generalise than quadratic ones.",
            (
                Check(
                    "share that generalises at weight decay 0, quadratic minus ReLU",
                    larger_share(*GENERALISING),
                    low=0.05,
                    of=(with_decay(0), with_decay(0, RELU)),
                ),
                Check(
                    "share that generalises at weight decay 5, quadratic minus ReLU",
                    larger_share(*GENERALISING),
                    low=0.03,
                    of=(with_decay(5), with_decay(5, RELU)),
                ),
            ),
            note="At the quick scale (p = 59, 5 × 5 cells) one cell is a share of 0.04. Without weight decay, "
            "quadratic networks generalise in just one cell in which ReLU networks do not.",
            seen_before=_SEEN,
        ),
    ),
)
