"""Figure 21: training curves in three phases, with LayerNorm."""

from functools import partial

from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.minibatches import draw_three_phases, phase_specs, phases_claim
from grokscope.experiments.scale import Scale


def needs(scale: Scale) -> Needs:
    """Three networks."""
    return Needs(networks=tuple(phase_specs("layer").values()))


def draw(evidence: Evidence) -> Drawing:
    """Curves side by side."""
    return draw_three_phases(evidence, "layer")


def _correlation(evidence: Evidence, fraction: float) -> float:
    spectra = evidence.network(phase_specs("layer")[fraction]).neurons
    return float("nan") if spectra is None else spectra.norm_correlation


EXPERIMENT = Experiment(
    name="fig21",
    title="Training curves with LayerNorm, in mini-batches",
    caption="Accuracies during training with LayerNorm, on mini-batches of 64, at ξ = 0.3 and three data fractions α.",
    needs=needs,
    draw=draw,
    claims=(
        phases_claim(
            "layernorm-phases",
            21,
            "layer",
            "With LayerNorm",
            note="At α = 0.5 the network is in Partial Inversion at step 2000 (train accuracy 0.88, seed 0), but "
            "memorises more and more: three seeds end at 0.95, 0.91 and 0.88, about the 0.9 at which Table 2 speaks of "
            "Coexistence.",
        ),
        Claim(
            "layernorm-scales-do-not-follow-ipr",
            "Appendix F",
            "LayerNorm, unlike BatchNorm, does not give larger scales to neurons with a higher IPR.",
            lambda scale: Needs(networks=tuple(phase_specs("layer").values()), seeds=3),
            tuple(
                Check(
                    f"rank correlation of |γ| and IPR at α {fraction:g}",
                    partial(_correlation, fraction=fraction),
                    low=-0.3,
                    high=0.3,
                )
                for fraction in phase_specs("layer")
            ),
            note="Three seeds at α = 0.8 have 0.09, 0.39 and 0.45: weaker than the 0.75 of BatchNorm, and not nothing.",
        ),
    ),
)
