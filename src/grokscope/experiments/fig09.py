"""Figure 9: phase diagrams with BatchNorm, for three batch sizes."""

from grokscope.experiments import fig10
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.diagrams import drawing_of
from grokscope.experiments.evidence import Needs
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.minibatches import diagram_plan, inversion_gain
from grokscope.experiments.scale import Scale

PLAN = diagram_plan("fig9", "batch")


def needs(scale: Scale) -> Needs:
    """One diagram of three panels."""
    return Needs(diagrams=(PLAN,))


EXPERIMENT = Experiment(
    name="fig09",
    title="Phase diagrams with BatchNorm, by batch size",
    caption="The phase in which a network with BatchNorm after the activation ends, over the data fraction α and the "
    "corruption fraction ξ, for three batch sizes. The number of steps and the learning rate change with the batch "
    "size so that all networks see equally many examples.",
    needs=needs,
    draw=drawing_of(PLAN),
    claims=(
        Claim(
            "batchnorm-inverts-more",
            "Section 2.1, Appendix F, Figures 9 and 10",
            "With BatchNorm more of the diagrams is inverted than without a norm.",
            lambda scale: Needs(diagrams=(PLAN, fig10.PLAN)),
            (
                Check(
                    "share of inverted cells, BatchNorm minus no norm",
                    lambda e: inversion_gain(e, PLAN, fig10.PLAN),
                    low=0.01,
                ),
            ),
        ),
    ),
)
