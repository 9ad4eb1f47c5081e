"""Figure 7: a Transformer and a three-layer MLP, with little weight decay and with more."""

from grokscope.experiments.experiment import Experiment
from grokscope.experiments.paper import fig07a, fig07b
from grokscope.experiments.paper.fig07_picture import draw_rows, needs_of

ROWS = (fig07a.ROW, fig07b.ROW)

EXPERIMENT = Experiment(
    name="fig07",
    title="Phase diagrams and IPR of a Transformer and a three-layer MLP",
    caption="Figures 7(a) and 7(b) together: a one-layer Transformer (above) and a three-layer ReLU MLP (below) with "
    "little weight decay and with more. The captions of the two halves say more.",
    needs=lambda scale: needs_of(ROWS),
    draw=lambda evidence: draw_rows(evidence, ROWS),
    claims=(*fig07a.EXPERIMENT.claims, *fig07b.EXPERIMENT.claims),
)
