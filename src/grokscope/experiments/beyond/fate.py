"""Beyond the paper: can one tell early, or before training, which neurons will memorise and which will generalise?"""

import math
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from grokscope.engines import initial_state
from grokscope.experiments.beyond.fate_picture import draw_fate
from grokscope.experiments.cause import Cause, Reason
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.paper import fig01
from grokscope.experiments.scale import Scale
from grokscope.measure import neuron_waves
from grokscope.measure.audit.detection import auroc
from grokscope.models import Weights
from grokscope.result import RunResult
from grokscope.spec import RunSpec
from grokscope.tables import Table
from grokscope.tasks import waves_of

FloatArray = npt.NDArray[np.float64]
Fate = dict[int, dict[str, FloatArray]]  # step → feature → value of each neuron [N]

FINAL = fig01.COEXISTENCE
STEPS = (1, 5, 10, 15, 25, 35, 50, 75, 100, 200, 500, 1000)  # of the snapshots; the whole run is added to them
# Claims look at those; curves are drawn through more, as much happens within few steps.
DRAWN_STEPS = sorted({*STEPS, *(round(10 ** (tenth / 10)) for tenth in range(33))})
PERIODIC = 0.5  # IPR at the end above which a neuron is called generalising; few lie between .1 and .75
FORETOLD = 0.9  # AUROC
IPR, SHARE, FIT, NORM = "IPR", "share of the strongest wave", "fit of the best wave to the rule", "norm of the weights"
SEEDS = 3


def snapshots(steps: Iterable[int] = STEPS) -> list[RunSpec]:
    """One run stopped at several steps, which does not change its beginning, and the whole run."""
    return [*(FINAL.updated({"training.steps": step}) for step in steps), FINAL]


def needs(scale: Scale) -> Needs:
    """One network at several ages, with three seeds."""
    return Needs(networks=tuple(snapshots(DRAWN_STEPS)), seeds=SEEDS)


def rule_fit(spec: RunSpec, weights: Weights) -> FloatArray:
    """How much the best wave of each neuron adds to the logits of the true sums, over all pairs [N].

    A neuron adds (Uₘ + Vₙ)² W_q to the logit of q. Its part Uₘ Vₙ W_q, summed over all pairs at q = m + n, is a sum
    over frequencies of Re(u v w*), with Fourier coefficients u, v and w: large if all three have the wave and their
    phases fit, φ_w = φ_u + φ_v. That is what the gradient of the rule makes grow.
    """
    neurons = spec.model.input_neurons(weights)
    assert neurons is not None
    u, v, w = waves_of(spec.task).coefficients(neurons.stacked())  # [N, K] each
    return np.asarray((u * v * w.conj()).real[:, 1:].max(axis=1))  # the constant tells no sum from another


def features(spec: RunSpec, weights: Weights) -> dict[str, FloatArray]:
    """What may foretell the fate of a neuron, each [N]."""
    waves = neuron_waves(spec.model, weights, spec.task)
    return {
        IPR: np.nan_to_num(waves.spectra.neuron_ipr),  # the dead have none
        SHARE: waves.power.max(axis=1),
        FIT: rule_fit(spec, weights),
        NORM: waves.norm,
    }


def fate(*snapshots: RunResult) -> tuple[Fate, npt.NDArray[np.bool_]]:
    """The features of every neuron at every age, from before training on, and whether it generalises at the end [N].

    The last snapshot is the whole run.
    """
    spec = snapshots[-1].spec
    ages: Fate = {0: features(spec, initial_state(spec).weights)}
    for result in snapshots:
        ages[result.spec.training.steps] = features(spec, result.trained_weights())
    return ages, features(spec, snapshots[-1].trained_weights())[IPR] > PERIODIC


def foretelling(ages: Fate, generalising: npt.NDArray[np.bool_]) -> dict[str, dict[int, float]]:
    """The AUROC with which each feature predicts at each step which neurons will generalise; NaN if none will."""
    found: dict[str, dict[int, float]] = {}
    for step, values in ages.items():
        for name, scores in values.items():
            value = auroc(scores, generalising)
            found.setdefault(name, {})[step] = math.nan if value is None else value
    return found


def first_step(by_step: dict[int, float]) -> float:
    """The first step from which the AUROC stays at .9 or above; NaN if there is none."""
    first = math.nan
    for step in sorted(by_step, reverse=True):
        if not by_step[step] >= FORETOLD:
            break
        first = step
    return first


def draw(evidence: Evidence) -> Drawing:
    """AUROC against the step, and how the IPR and norm of the two kinds of neurons separate."""
    of_seeds = [
        evidence.at_seed(seed).networks(snapshots(DRAWN_STEPS)) for seed in range(evidence.scale.seed_count(SEEDS))
    ]
    fates = [fate(*results) for results in of_seeds]
    aurocs = [foretelling(*each) for each in fates]
    generalising = np.concatenate([mask for _, mask in fates])
    pooled = {
        step: {name: np.concatenate([ages[step][name] for ages, _ in fates]) for name in (IPR, NORM)}
        for step in fates[0][0]
    }
    run_ids = [{result.spec.training.steps: result.run_id for result in results} for results in of_seeds]
    return Drawing(draw_fate(aurocs, pooled, generalising), _table(aurocs, run_ids))


def _table(aurocs: list[dict[str, dict[int, float]]], run_ids: list[dict[int, str]]) -> Table:
    rows = [
        (seed, step, run_ids[seed].get(step, ""), name, value)
        for seed, by_feature in enumerate(aurocs)
        for name, by_step in by_feature.items()
        for step, value in by_step.items()
    ]
    names = ("seed", "step", "run_id", "feature", "auroc")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _aurocs(*snapshots: RunResult) -> dict[str, dict[int, float]]:
    return foretelling(*fate(*snapshots))


def _auroc(feature: str, step: int) -> Callable[..., float]:
    return lambda *snapshots: _aurocs(*snapshots)[feature][step]


EXPERIMENT = Experiment(
    name="beyond-fate",
    title="Beyond the paper: the fate of neurons",
    caption="The network of Figure 1 without weight decay, at several ages. A neuron is called generalising if its "
    "IPR ends above 0.5, memorising otherwise. Left: how well a property of the neurons at each step predicts which "
    "of them will generalise (AUROC; 0.5 is guessing; bars span the seeds). Middle and right: IPR and norm of the two "
    "kinds, median and the range from the 10th to the 90th percentile. The first step shown is the network before "
    "training.",
    needs=needs,
    draw=draw,
    claims=(
        Claim(
            "beyond-fate-initialisation",
            "beyond the paper",
            "Before training neither the IPR nor the norm of a neuron tells whether it will generalise; how well its "
            "best wave fits the rule tells more than guessing.",
            (
                Check("AUROC of the IPR at step 0", _auroc(IPR, 0), 0.4, 0.6, of=snapshots()),
                Check("AUROC of the norm at step 0", _auroc(NORM, 0), 0.4, 0.6, of=snapshots()),
                Check("AUROC of the fit to the rule at step 0", _auroc(FIT, 0), low=0.6, of=snapshots()),
            ),
            cause=Cause(Reason.BOUND, "Every seed is above guessing, and below the 0.6 that we had asked for."),
            note="The fit to the rule has an AUROC of 0.59 ± 0.01 over three seeds, above guessing in each of them. "
            "Something can be told before training, but less than we had expected.",
        ),
        Claim(
            "beyond-fate-early",
            "beyond the paper",
            "After 100 of 2000 steps the IPR tells which neurons will generalise, but not yet after 10.",
            (
                Check("AUROC of the IPR at step 10", _auroc(IPR, 10), high=0.9, of=snapshots()),
                Check("AUROC of the IPR at step 100", _auroc(IPR, 100), low=0.9, of=snapshots()),
                Check(
                    "step from which on it is at least 0.9",
                    lambda *snapshots: first_step(_aurocs(*snapshots)[IPR]),
                    15,
                    100,
                    of=snapshots(),
                ),
            ),
            cause=Cause(Reason.SEEDS, "One of three seeds is above 0.9 by step 100."),
            note="Over three seeds the AUROC at step 100 is 0.894 ± 0.006: one seed is above 0.9 by then, the others "
            "by step 200, the next one that was measured.",
        ),
    ),
)
