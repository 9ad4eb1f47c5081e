"""Figure 30: phase diagrams of ReLU networks that are ten times as wide."""

from grokscope.experiments.cause import Cause, Reason
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.diagrams import drawing_of
from grokscope.experiments.evidence import Needs
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.paper.fig03 import CORRUPTIONS, DATA_FRACTIONS, with_decay
from grokscope.experiments.paper.fig27 import BASE, RELU
from grokscope.experiments.paper.fig29 import DECAYS, WIDTH
from grokscope.experiments.quantities.regions import GENERALISING, larger_share, share
from grokscope.experiments.scale import Scale
from grokscope.phases import Phase
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.plan import Plan

WIDE = Plan(
    "fig30",
    BASE.updated({"model.width": WIDTH}),
    (DATA_FRACTIONS, CORRUPTIONS, Axis.over("optimizer.weight_decay", DECAYS)),
)


def needs(scale: Scale) -> Needs:
    """One diagram."""
    return Needs(diagrams=(WIDE,))


_WIDE, _USUAL = (with_decay(DECAYS[-1], plan) for plan in (WIDE, RELU))


EXPERIMENT = Experiment(
    name="fig30",
    title="Phase diagrams of wide ReLU networks",
    caption="As Figure 27, with N = 5000 neurons, or as many as the scale allows.",
    needs=needs,
    draw=drawing_of(WIDE),
    claims=(
        Claim(
            "wide-relu-better",
            "Appendix O, Figure 30",
            "Wide ReLU networks generalise in much more of the plane, and hardly any is left of Confusion.",
            (
                Check(
                    f"share that generalises at weight decay {DECAYS[-1]}, wide minus usual width",
                    larger_share(*GENERALISING),
                    low=0.1,
                    of=(_WIDE, _USUAL),
                ),
                Check(
                    f"share of Confusion at weight decay {DECAYS[-1]}, wide",
                    share(Phase.CONFUSION),
                    high=0.02,
                    of=_WIDE,
                ),
                Check(
                    f"share of Confusion at weight decay {DECAYS[-1]}, wide minus usual width",
                    larger_share(Phase.CONFUSION),
                    high=-0.05,
                    of=(_WIDE, _USUAL),
                ),
            ),
            cause=Cause(
                Reason.REDUCED,
                "N = 900 stands for 5000, against 300, on 5 × 5 cells, and the narrow networks have no Confusion "
                "there that could vanish.",
            ),
            note="At the quick scale (N = 900 instead of 5000, against 300; 5 × 5 cells) both widths generalise in "
            "the same eight cells, and neither shows Confusion at this weight decay.",
        ),
    ),
)
