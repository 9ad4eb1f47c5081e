"""The paper's figures and claims, experiments beyond it, and what a figure of your own is made of.

    from grokscope.experiments import Check, Claim, Drawing, Evidence, Experiment, Needs, final

`examples/my_figure.py` is one: `grokscope figure examples/my_figure.py` draws it.
"""

from grokscope.experiments.claim import Check, Claim, Finding, Verdict
from grokscope.experiments.evidence import Evidence, Needs, Untrained, View
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.quantities.curves import final, final_difference, final_ratio
from grokscope.experiments.quantities.regions import Region, larger_share, region, share
from grokscope.experiments.scale import Scale
from grokscope.experiments.verdicts import Findings
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.plan import Plan

__all__ = [
    "Axis",
    "Check",
    "Claim",
    "Drawing",
    "Evidence",
    "Experiment",
    "Finding",
    "Findings",
    "Needs",
    "Plan",
    "Region",
    "Scale",
    "Untrained",
    "Verdict",
    "View",
    "final",
    "final_difference",
    "final_ratio",
    "larger_share",
    "region",
    "share",
]
