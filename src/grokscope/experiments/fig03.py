"""Figure 3: where in the plane of data fraction and corruption a network does what, as regularisation grows."""

from grokscope.experiments import tables
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.scale import Scale
from grokscope.plots import draw_phase_diagrams
from grokscope.sweep.plan import Axis, Plan

DATA_FRACTIONS = Axis(("task.data_fraction",), tuple((round(0.1 + 0.05 * i, 2),) for i in range(17)))
CORRUPTIONS = Axis(("task.corruption",), tuple((round(0.05 * i, 2),) for i in range(19)))
WEIGHT_DECAY = Plan(
    "fig3a", axes=(DATA_FRACTIONS, CORRUPTIONS, Axis(("optimizer.weight_decay",), ((0,), (5,), (15,), (20,))))
)
DROPOUT = Plan("fig3b", axes=(DATA_FRACTIONS, CORRUPTIONS, Axis(("model.dropout",), ((0,), (0.3,), (0.6,), (0.9,)))))


def needs(scale: Scale) -> Needs:
    """Two diagrams of four panels."""
    return Needs(diagrams=(WEIGHT_DECAY, DROPOUT))


def draw(evidence: Evidence) -> Drawing:
    """Weight decay above, dropout below."""
    decay, dropout = evidence.diagram(WEIGHT_DECAY), evidence.diagram(DROPOUT)
    data = tables.stacked(fig3a=decay.to_columns(), fig3b=dropout.to_columns())
    return Drawing(draw_phase_diagrams([decay, dropout]), data)


EXPERIMENT = Experiment(
    name="fig03",
    title="Phase diagrams with weight decay and dropout",
    caption="The phase in which a network ends, over the data fraction α and the corruption fraction ξ, for growing "
    "weight decay (above) and dropout (below).",
    needs=needs,
    draw=draw,
)
