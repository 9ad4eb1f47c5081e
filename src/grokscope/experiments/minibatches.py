"""What the figures on mini-batches share: diagrams over batch sizes (9–11), networks in three phases (20–22)."""

import math
from functools import partial

from grokscope.experiments import tables
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing
from grokscope.experiments.fig03 import CORRUPTIONS, DATA_FRACTIONS
from grokscope.experiments.regions import INVERTING, share_gain
from grokscope.phases import GUESSING_MARGIN, HIGH_ACCURACY, Phase
from grokscope.plots import draw_curves
from grokscope.spec import Norm, RunSpec
from grokscope.sweeps.plan import Axis, Plan

# ---- diagrams ---------------------------------------------------------------------------------------------------

_SCALED = [RunSpec().with_batches_of(size) for size in (8, 64, 256)]
_BATCHES = Axis(  # in ascending order, which the claims rely on
    ("training.batch_size", "training.steps", "optimizer.learning_rate"),
    tuple((spec.training.batch_size, spec.training.steps, spec.optimizer.learning_rate) for spec in _SCALED),
)


def diagram_plan(name: str, norm: Norm) -> Plan:
    """A panel for each batch size."""
    # Measuring every 50 steps would take longer than the 64 000 small steps themselves, and only the end is shown.
    base = RunSpec().updated({"model.norm": norm, "training.measure_every": 500})
    return Plan(name, base, (DATA_FRACTIONS, CORRUPTIONS, _BATCHES))


def inversion_gain(evidence: Evidence, more: Plan, less: Plan) -> float:
    """By how much more of the first diagram, all batch sizes together, is inverted."""
    return share_gain(evidence.diagram(more).panels, evidence.diagram(less).panels, INVERTING)


# ---- single networks --------------------------------------------------------------------------------------------

CORRUPTION = 0.3
_PHASES = {0.4: Phase.COEXISTENCE, 0.5: Phase.PARTIAL_INVERSION, 0.8: Phase.FULL_INVERSION}  # by data fraction
_SPREAD = 0.02  # of the train accuracy, between seeds


def phase_specs(norm: Norm) -> dict[float, RunSpec]:
    """The networks of Figures 20 to 22 by their data fractions."""
    base = RunSpec().updated({"task.corruption": CORRUPTION, "model.norm": norm}).with_batches_of(64)
    return {fraction: base.updated({"task.data_fraction": fraction}) for fraction in _PHASES}


def draw_three_phases(evidence: Evidence, norm: Norm) -> Drawing:
    """One of Figures 20 to 22."""
    results = {f"α = {fraction:g}": evidence.network(spec) for fraction, spec in phase_specs(norm).items()}
    return Drawing(draw_curves(list(results.values()), list(results)), tables.curves(results))


def phases_claim(name: str, figure: int, norm: Norm, kind: str, note: str = "") -> Claim:
    """That each network ends in the phase that the figure's caption names, by the bounds of Table 2."""
    specs = phase_specs(norm)
    checks = []
    for fraction, phase in _PHASES.items():
        low, high = _train_bounds(phase)
        checks += [
            Check(f"test accuracy at α {fraction:g}", partial(_test, spec=specs[fraction]), low=HIGH_ACCURACY),
            Check(f"train accuracy at α {fraction:g}", partial(_train, spec=specs[fraction]), low=low, high=high),
        ]
    return Claim(
        name,
        f"Figure {figure}, Table 2",
        f"{kind}, mini-batches of 64 and 30 % corrupted labels, a network coexists at α = 0.4, inverts partially at "
        "0.5, and fully at 0.8.",
        lambda scale: Needs(networks=tuple(specs.values()), seeds=3),
        tuple(checks),
        note,
    )


def _train_bounds(phase: Phase) -> tuple[float, float]:
    """Table 2's, with room for what seeds do."""
    full = 1 + GUESSING_MARGIN - CORRUPTION
    low, high = {
        Phase.COEXISTENCE: (HIGH_ACCURACY, math.inf),
        Phase.PARTIAL_INVERSION: (full, HIGH_ACCURACY),
        Phase.FULL_INVERSION: (-math.inf, full),
    }[phase]
    return round(low - _SPREAD, 3), round(high + _SPREAD, 3)


def _test(evidence: Evidence, spec: RunSpec) -> float:
    return evidence.network(spec).final.test_accuracy


def _train(evidence: Evidence, spec: RunSpec) -> float:
    return evidence.network(spec).final.train_accuracy
