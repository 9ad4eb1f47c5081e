"""Figure 28: phase diagrams of ReLU networks with dropout."""

from grokscope.experiments.cause import Cause, Reason
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.diagrams import drawing_of
from grokscope.experiments.evidence import Needs
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.paper.fig03 import CORRUPTIONS, DATA_FRACTIONS, with_dropout
from grokscope.experiments.paper.fig27 import BASE
from grokscope.experiments.quantities.regions import INVERTING, larger_share, share
from grokscope.experiments.scale import Scale
from grokscope.phases import Phase
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.plan import Plan

# The paper states no values. These are Figure 3's without the last; 0.6 serves quadratic networks best.
RELU = Plan("fig28", BASE, (DATA_FRACTIONS, CORRUPTIONS, Axis.over("model.dropout", (0, 0.3, 0.6))))


def needs(scale: Scale) -> Needs:
    """One diagram."""
    return Needs(diagrams=(RELU,))


EXPERIMENT = Experiment(
    name="fig28",
    title="Phase diagrams of ReLU networks, with dropout",
    caption="As Figure 3 (b), with ReLU in place of the square.",
    needs=needs,
    draw=drawing_of(RELU),
    claims=(
        Claim(
            "relu-dropout-confuses",
            "Appendix N, Figure 28",
            "Dropout does not help ReLU networks as it helps quadratic ones: already moderate dropout ends in "
            "Confusion.",
            (
                *(
                    Check(
                        f"share of Confusion at dropout {dropout}",
                        share(Phase.CONFUSION),
                        low=0.3,
                        of=with_dropout(dropout, RELU),
                    )
                    for dropout in (0.3, 0.6)
                ),
                Check(
                    "share of Inversion at dropout 0.6, quadratic minus ReLU",
                    larger_share(*INVERTING),
                    low=0.03,
                    of=(with_dropout(0.6), with_dropout(0.6, RELU)),
                ),
            ),
            cause=Cause(
                Reason.REDUCED,
                "At p = 59 and N = 300 many networks at dropout 0.3 have train accuracies just above the 0.9 of "
                "Table 2; at 0.6 they are in Confusion.",
            ),
            note="At the quick scale (p = 59, 300 neurons) there is no Confusion at dropout 0.3: many networks have a "
            "train accuracy of 0.90 to 0.92, just above the 0.9 where Memorization begins in Table 2. At 0.6 there is "
            "Confusion.",
            seen_before="The checks at dropout 0.6 were added after a trial with p = 47 had shown no Confusion at 0.3. "
            "The check at 0.3 stays.",
        ),
    ),
)
