"""Figures 20, 21 and 22: training curves in three phases, with BatchNorm, with LayerNorm and without a norm."""

import math
from collections.abc import Callable
from functools import partial
from typing import Unpack

from grokscope.experiments import tables
from grokscope.experiments.cause import Cause, Reason
from grokscope.experiments.claim import Check, Claim, Remarks
from grokscope.experiments.dense import BANDS, SEEDS, densely
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.quantities.curves import final
from grokscope.experiments.scale import Scale
from grokscope.models import Norm
from grokscope.phases import GUESSING_MARGIN, HIGH_ACCURACY, Phase
from grokscope.plots.runs import draw_seeds
from grokscope.result import RunResult
from grokscope.spec import RunSpec

CORRUPTION = 0.3
_PHASES = {0.4: Phase.COEXISTENCE, 0.5: Phase.PARTIAL_INVERSION, 0.8: Phase.FULL_INVERSION}  # by data fraction
_EARLY = 2000  # steps of the authors' notebook; the paper has 8000
_SPREAD = 0.02  # of the train accuracy, between seeds


def phase_specs(norm: Norm) -> dict[float, RunSpec]:
    """The networks of Figures 20 to 22 by their data fractions."""
    base = RunSpec().updated({"task.corruption": CORRUPTION, "model.norm": norm}).with_batches_of(64)
    return {fraction: base.updated({"task.data_fraction": fraction}) for fraction in _PHASES}


def _three_networks(scale: Scale, norm: Norm) -> Needs:
    return Needs(networks=tuple(map(densely, phase_specs(norm).values())), seeds=SEEDS)


def _draw_three_phases(evidence: Evidence, norm: Norm) -> Drawing:
    """One of Figures 20 to 22."""
    specs = phase_specs(norm)
    networks = {f"α = {fraction:g}": evidence.seeds_of(densely(spec), SEEDS) for fraction, spec in specs.items()}
    return Drawing(draw_seeds(networks), tables.curves_of_seeds(networks))


def phases_claim(
    name: str, figure: int, norm: Norm, kind: str, *, step: int | None = None, **remarks: Unpack[Remarks]
) -> Claim:
    """The claim that each network is in the phase that the figure's caption names, as Table 2 defines it: in the end,
    or at a step.
    """
    specs = phase_specs(norm)
    checks = []
    for fraction, phase in _PHASES.items():
        low, high = _train_bounds(phase)
        checks += [
            Check(f"test accuracy at α {fraction:g}", _at("test_accuracy", step), HIGH_ACCURACY, of=specs[fraction]),
            Check(f"train accuracy at α {fraction:g}", _at("train_accuracy", step), low, high, of=specs[fraction]),
        ]
    setting = kind if step is None else f"After {step} steps, {kind[0].lower()}{kind[1:]}"
    return Claim(
        name,
        f"Figure {figure}, Table 2",
        f"{setting}, mini-batches of 64 and 30 % corrupted labels, a network coexists at α = 0.4, inverts partially "
        "at 0.5, and fully at 0.8.",
        tuple(checks),
        **remarks,
    )


def _phases_early(name: str, figure: int, norm: Norm, kind: str, cause: Cause | None = None) -> Claim:
    """The same where the authors' notebook ends."""
    return phases_claim(
        name,
        figure,
        norm,
        kind,
        step=_EARLY,
        stated="2026-11-17",
        seen_before=f"Stated after the train accuracy at α = 0.5 and step {_EARLY} had been seen for one seed.",
        note="The paper scales the steps with the batch size, to 8000; the authors' notebook ends here.",
        cause=cause,
    )


def _at(column: str, step: int | None) -> Callable[[RunResult], float]:
    """A column of the curve at a step, or at the end if there is none or it comes first."""
    if step is None:
        return final(column)
    return lambda result: float(getattr(next((row for row in result.curve if row.step >= step), result.final), column))


def _train_bounds(phase: Phase) -> tuple[float, float]:
    """The bounds of Table 2, with room for differences between seeds."""
    full = 1 + GUESSING_MARGIN - CORRUPTION
    low, high = {
        Phase.COEXISTENCE: (HIGH_ACCURACY, math.inf),
        Phase.PARTIAL_INVERSION: (full, HIGH_ACCURACY),
        Phase.FULL_INVERSION: (-math.inf, full),
    }[phase]
    return round(low - _SPREAD, 3), round(high + _SPREAD, 3)


def _correlation(result: RunResult) -> float:
    """The rank correlation of |γ| with the IPR."""
    return math.nan if result.neurons is None else result.neurons.norm_correlation


_LATER = (
    "In the paper the network at α = 0.5 is in Partial Inversion. Here it is, too, at step 2000, where the authors' "
    "notebook ends; then it memorises more and more. "
    f"{BANDS}"
)


_FIG20 = Experiment(
    name="fig20",
    title="Training curves with BatchNorm, in mini-batches",
    caption="Accuracies during training with BatchNorm, on mini-batches of 64, at ξ = 0.3 and three data fractions α. "
    f"{_LATER}",
    needs=partial(_three_networks, norm="batch"),
    draw=partial(_draw_three_phases, norm="batch"),
    claims=(
        phases_claim(
            "batchnorm-phases",
            20,
            "batch",
            "With BatchNorm",
            cause=Cause(
                Reason.UNEXPLAINED,
                "After the 8000 steps of the paper the train accuracy at α = 0.5 is 0.932 in the mean over three "
                "seeds; "
                "at step 2000, where the authors' notebook ends, the network is in Partial Inversion (seed 0).",
            ),
            note="At α = 0.5 the network is in Partial Inversion at step 2000 (train accuracy 0.84, seed 0), but "
            "memorises more and more and ends at 0.92, above the 0.9 where Coexistence begins in Table 2.",
        ),
        _phases_early("batchnorm-phases-at-2000", 20, "batch", "With BatchNorm"),
    ),
)

_FIG21 = Experiment(
    name="fig21",
    title="Training curves with LayerNorm, in mini-batches",
    caption="Accuracies during training with LayerNorm, on mini-batches of 64, at ξ = 0.3 and three data fractions α. "
    f"{_LATER}",
    needs=partial(_three_networks, norm="layer"),
    draw=partial(_draw_three_phases, norm="layer"),
    claims=(
        phases_claim(
            "layernorm-phases",
            21,
            "layer",
            "With LayerNorm",
            cause=Cause(
                Reason.SEEDS,
                "Three seeds end on both sides of the bound at step 8000; at step 2000, where the authors' notebook "
                "ends, seed 0 is in Partial Inversion.",
            ),
            note="At α = 0.5 the network is in Partial Inversion at step 2000 (train accuracy 0.88, seed 0), but "
            "memorises more and more: three seeds end at 0.95, 0.91 and 0.88, around the 0.9 where Coexistence begins "
            "in Table 2.",
        ),
        _phases_early("layernorm-phases-at-2000", 21, "layer", "With LayerNorm"),
        Claim(
            "layernorm-scales-do-not-follow-ipr",
            "Appendix F",
            "LayerNorm, unlike BatchNorm, does not give larger scales to neurons with a higher IPR.",
            tuple(
                Check(f"rank correlation of |γ| and IPR at α {fraction:g}", _correlation, low=-0.3, high=0.3, of=spec)
                for fraction, spec in phase_specs("layer").items()
            ),
            cause=Cause(Reason.SEEDS, "At α = 0.8 the correlation is 0.09, 0.39 and 0.45 in three seeds."),
            note="Three seeds at α = 0.8 have 0.09, 0.39 and 0.45: weaker than the 0.75 of BatchNorm, but not zero.",
        ),
    ),
)

_FIG22 = Experiment(
    name="fig22",
    title="Training curves without a norm, in mini-batches",
    caption="Accuracies during training without a norm, on mini-batches of 64, at ξ = 0.3 and three data fractions α. "
    f"{_LATER}",
    needs=partial(_three_networks, norm="none"),
    draw=partial(_draw_three_phases, norm="none"),
    claims=(
        phases_claim(
            "minibatch-phases",
            22,
            "none",
            "Without a norm",
            cause=Cause(
                Reason.UNEXPLAINED,
                "After the 8000 steps of the paper the train accuracy at α = 0.5 is 0.935 in the mean over three "
                "seeds; "
                "at step 2000, where the authors' notebook ends, the network is in Partial Inversion (seed 0).",
            ),
            note="At α = 0.5 the network is in Partial Inversion at step 2000 (train accuracy 0.87, seed 0), but "
            "memorises more and more and ends at 0.94, above the 0.9 where Coexistence begins in Table 2.",
        ),
        _phases_early(
            "minibatch-phases-at-2000",
            22,
            "none",
            "Without a norm",
            cause=Cause(
                Reason.UNEXPLAINED,
                "At α = 0.4 the network knows the rule on 0.60 ± 0.03 of the test set by step 2000 (three seeds); all "
                "else is as in the paper.",
            ),
        ),
    ),
)

EXPERIMENTS = (_FIG20, _FIG21, _FIG22)
