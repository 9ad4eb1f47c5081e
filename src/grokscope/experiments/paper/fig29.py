"""Figure 29: phase diagrams of quadratic networks that are ten times as wide."""

from grokscope.experiments.cause import Cause, Reason, Superseded
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.diagrams import drawing_of
from grokscope.experiments.evidence import Needs
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.paper.fig03 import CORRUPTIONS, DATA_FRACTIONS, WEIGHT_DECAY, with_decay
from grokscope.experiments.quantities.regions import GENERALISING, Region, Shares, larger_share, share
from grokscope.experiments.scale import Scale
from grokscope.phases import Phase
from grokscope.spec import RunSpec
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.plan import Plan

WIDTH = 5000
DECAYS = (0, 15)  # none, and that of Figure 3 with which most networks generalise
WIDE = Plan(
    "fig29",
    RunSpec().updated({"model.width": WIDTH}),
    (DATA_FRACTIONS, CORRUPTIONS, Axis.over("optimizer.weight_decay", DECAYS)),
)


def needs(scale: Scale) -> Needs:
    """One diagram."""
    return Needs(diagrams=(WIDE,))


def _less_in_all(*panels: Region) -> float:
    """By how much more of the first half of the panels generalises than of the second, all weight decays together."""
    shares = [panel.share(*GENERALISING) for panel in panels]
    half = len(panels) // 2
    return (sum(shares[:half]) - sum(shares[half:])) / half


_SEEN = (
    "Stated after both diagrams had been seen at the quick scale, and that of the usual width on the paper's grid too."
)


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
            (
                Check(
                    "share of Partial Inversion at weight decay 0",
                    share(Phase.PARTIAL_INVERSION),
                    high=0.01,
                    of=with_decay(0, WIDE),
                ),
                Check(
                    "share of Coexistence at weight decay 0, usual width minus wide",
                    larger_share(Phase.COEXISTENCE),
                    low=0.03,
                    of=(with_decay(0), with_decay(0, WIDE)),
                ),
            ),
            superseded=Superseded(
                ("wide-loses-partial-inversion",),
                "2026-11-17",
                "Where the usual width has no Partial Inversion either, as at the quick scale, this could not fail.",
            ),
        ),
        Claim(
            "wide-generalises-slightly-worse",
            "Appendix O, Figure 29",
            "With weight decay, wide quadratic networks generalise in a little less of the plane.",
            (
                Check(
                    "share that generalises at weight decay 15, usual width minus wide",
                    larger_share(*GENERALISING),
                    low=0,
                    high=0.2,
                    of=(with_decay(15), with_decay(15, WIDE)),
                ),
            ),
            note="At the quick scale (N = 900 instead of 5000, against 300; 5 × 5 cells) wide networks generalise in "
            "one cell more: at α = 0.3 and ξ = 0.2.",
            superseded=Superseded(
                ("wide-generalises-less-unregularised",),
                "2026-11-17",
                "What the caption says in particular, it says of networks without weight decay.",
            ),
        ),
        Claim(
            "wide-loses-partial-inversion",
            "Appendix O, Figure 29",
            "Without weight decay the Partial Inversion of networks of the usual width is gone in wide ones, and with "
            "it some Coexistence.",
            (
                Check(
                    "share of Partial Inversion at weight decay 0, usual width",
                    share(Phase.PARTIAL_INVERSION),
                    low=0.03,
                    of=with_decay(0),
                ),
                Check(
                    "share of Partial Inversion at weight decay 0",
                    share(Phase.PARTIAL_INVERSION),
                    high=0.01,
                    of=with_decay(0, WIDE),
                ),
                Check(
                    "share of Coexistence at weight decay 0, usual width minus wide",
                    larger_share(Phase.COEXISTENCE),
                    low=0.03,
                    of=(with_decay(0), with_decay(0, WIDE)),
                ),
            ),
            stated="2026-11-17",
            seen_before=_SEEN,
            cause=Cause(
                Reason.REDUCED,
                "At p = 59 and N = 300 there is no Partial Inversion without weight decay that could vanish; at the "
                "paper's size there is, in 0.118 of the diagram.",
            ),
        ),
        Claim(
            "wide-generalises-less-unregularised",
            "Appendix O, Figure 29",
            "Wide quadratic networks generalise in a little less of the plane: without weight decay, and with both "
            "weight decays together.",
            (
                Check(
                    "share that generalises at weight decay 0, usual width minus wide",
                    larger_share(*GENERALISING),
                    low=0.01,
                    high=0.2,
                    of=(with_decay(0), with_decay(0, WIDE)),
                ),
                Check(
                    "share that generalises at both weight decays, usual width minus wide",
                    Shares(_less_in_all, panels=len(DECAYS), difference=True),
                    low=0,
                    high=0.2,
                    of=[with_decay(decay, plan) for plan in (WEIGHT_DECAY, WIDE) for decay in DECAYS],
                ),
            ),
            stated="2026-11-17",
            seen_before=_SEEN,
            note="At the quick scale it rests on few cells of 25: without weight decay wide networks generalise in "
            "two fewer, and with weight decay 15 in one more.",
        ),
    ),
)
