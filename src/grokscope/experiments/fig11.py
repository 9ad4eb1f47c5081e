"""Figure 11: phase diagrams with LayerNorm, for three batch sizes."""

from grokscope.experiments import fig09, fig10
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.diagrams import drawing_of
from grokscope.experiments.evidence import Needs
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.minibatches import diagram_plan, inversion_gain
from grokscope.experiments.scale import Scale

PLAN = diagram_plan("fig11", "layer")


def needs(scale: Scale) -> Needs:
    """One diagram of three panels."""
    return Needs(diagrams=(PLAN,))


EXPERIMENT = Experiment(
    name="fig11",
    title="Phase diagrams with LayerNorm, by batch size",
    caption="The phase in which a network with LayerNorm after the activation ends, over the data fraction α and the "
    "corruption fraction ξ, for three batch sizes. The number of steps and the learning rate change with the batch "
    "size so that all networks see equally many examples.",
    needs=needs,
    draw=drawing_of(PLAN),
    claims=(
        Claim(
            "layernorm-inverts-more",
            "Appendix F, Figures 10 and 11",
            "With LayerNorm more of the diagrams is inverted than without a norm.",
            lambda scale: Needs(diagrams=(PLAN, fig10.PLAN)),
            (
                Check(
                    "share of inverted cells, LayerNorm minus no norm",
                    lambda e: inversion_gain(e, PLAN, fig10.PLAN),
                    low=0.01,
                ),
            ),
            note="At the quick scale (p = 59, 5 × 5 cells) every network with LayerNorm ends in the phase of that "
            "without, and one cell of 75 is inverted in both.",
        ),
        Claim(
            "batchnorm-inverts-most",
            "Appendix F, Figures 9 and 11",
            "Of the two norms BatchNorm leads to more Inversion.",
            lambda scale: Needs(diagrams=(fig09.PLAN, PLAN)),
            (
                Check(
                    "share of inverted cells, BatchNorm minus LayerNorm",
                    lambda e: inversion_gain(e, fig09.PLAN, PLAN),
                    low=0.01,
                ),
            ),
        ),
    ),
)
