"""Figure 14: three-layer MLPs that start from weights of another size."""

from typing import Unpack

from grokscope.experiments import tables
from grokscope.experiments.cause import Cause, Reason
from grokscope.experiments.claim import Check, Claim, Remarks
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.paper.deep_networks import MORE_MLP
from grokscope.experiments.paper.fig03 import CORRUPTIONS, DATA_FRACTIONS
from grokscope.experiments.quantities.curves import final, final_ratio, ratio
from grokscope.experiments.quantities.deep import ipr_growth, output_ipr
from grokscope.experiments.scale import Scale
from grokscope.plots import draw_phase_diagrams
from grokscope.result import RunResult
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.plan import Plan

_PARAMETERIZATION = "model.parameterization"
# With this weight decay Figure 7's network inverts fully, so the standard panel is one of that figure.
DIAGRAM = Plan("fig14", MORE_MLP, (DATA_FRACTIONS, CORRUPTIONS, Axis.over(_PARAMETERIZATION, ("standard", "lazy"))))
STANDARD, LAZY = (MORE_MLP.updated({_PARAMETERIZATION: name}) for name in ("standard", "lazy"))


def needs(scale: Scale) -> Needs:
    """A diagram of two panels, and two networks at α = .8, ξ = .2."""
    return Needs(networks=(STANDARD, LAZY), diagrams=(DIAGRAM,))


def draw(evidence: Evidence) -> Drawing:
    """The diagrams, then the histograms."""
    diagram = evidence.diagram(DIAGRAM)
    networks = {_title(result): result for result in evidence.networks((STANDARD, LAZY))}
    data = tables.stacked(fig14=diagram.to_columns(), neurons=tables.neurons(networks))
    return Drawing(draw_phase_diagrams([diagram], beside=[networks]), data)


def _title(result: RunResult) -> str:
    return f"{result.spec.model.parameterization}\n{result.outcome}"


def _claim(name: str, statement: str, *checks: Check, **remarks: Unpack[Remarks]) -> Claim:
    return Claim(name, "Appendix G.3, Figure 14", statement, checks, beside=(STANDARD, LAZY), **remarks)


EXPERIMENT = Experiment(
    name="fig14",
    title="Phase diagrams and IPR of three-layer MLPs in two parameterisations",
    caption="Three-layer ReLU MLPs whose weights start with variance 2/fan-in (standard), or larger, 2/N^(2/3), which "
    "makes training lazier: phases over α and ξ, and the IPR of rows of the input layer and, outlined, of columns of "
    "the output layer, at α = 0.8, ξ = 0.2. "
    "In the paper the output layer of the lazier network is the more periodic one; here it is the less periodic one. "
    "At the scale `mixed` the diagrams are of smaller networks, with more weight decay.",
    needs=needs,
    draw=draw,
    claims=(
        _claim(
            "parameterisation-keeps-periodicity",
            "In both parameterisations the network finds the rule and its input neurons become periodic.",
            Check("test accuracy, standard", final("test_accuracy"), low=0.9, of=STANDARD),
            Check("test accuracy, lazy", final("test_accuracy"), low=0.9, of=LAZY),
            Check("IPR over that at the start, standard", ipr_growth, low=2, of=STANDARD),
            Check("IPR over that at the start, lazy", ipr_growth, low=2, of=LAZY),
        ),
        _claim(
            "lazy-keeps-input-ipr",
            "Lazier training hardly changes the IPR at the input.",
            Check(
                "input IPR, lazy over standard",
                final_ratio("mean_ipr"),
                low=0.75,
                high=1.33,
                of=(LAZY, STANDARD),
            ),
        ),
        _claim(
            "lazy-raises-output-ipr",
            "Lazier training makes the columns of the output layer more periodic.",
            Check(
                "output IPR, lazy over standard",
                lambda lazy, standard: ratio(output_ipr(lazy), output_ipr(standard)),
                low=1.1,
                of=(LAZY, STANDARD),
            ),
            cause=Cause(
                Reason.UNPUBLISHED,
                "Weight decay and learning rate of Figure 14 are not published; with Figure 7's the lazy network "
                "memorises again after it has found the rule; one seed.",
            ),
            note="At p = 97 with 500 neurons a layer it is the other way round: lazy ends at 0.058 and standard at "
            "0.169; noise has 0.040. The lazy network ignores the wrong labels when it has found the rule, by step "
            "1350, and then memorises them, up to a train accuracy of 0.999. With p = 47 and 160 neurons a layer both "
            "end below the 0.083 of noise, lazy at 0.064 and standard at 0.062.",
        ),
    ),
)
