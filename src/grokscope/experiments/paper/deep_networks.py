"""The Transformers and three-layer MLPs of Figure 7, with relatives in Figures 12 to 14; what is claimed of both."""

from collections.abc import Sequence
from typing import Unpack

from grokscope.experiments.cause import Cause, Reason
from grokscope.experiments.claim import Check, Claim, Remarks
from grokscope.experiments.paper.fig03 import CORRUPTIONS, DATA_FRACTIONS
from grokscope.experiments.quantities.curves import final
from grokscope.experiments.quantities.deep import both_high, steps_to_unlearning, train_before_grokking
from grokscope.experiments.quantities.regions import GENERALISING, share_grown
from grokscope.phases import Phase
from grokscope.spec import RunSpec
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.plan import Plan

DECAY = "optimizer.weight_decay"
_SEEDS = 3
# The published panels have weight decays 10 and 50 in an optimiser scheme that is not published. These are for plain
# AdamW with logits and scores divided by √d. At p = 97, α = .8, ξ = .2 the Transformer was seen to memorise with 0.5
# and to invert fully with 2, and the MLP to invert fully with 5 (after 2000 steps); 1 was tried on smaller MLPs only.
TRANSFORMER_DECAYS = (0.5, 2.0)
MLP_DECAYS = (1.0, 5.0)
_SELECTED = {"task.data_fraction": 0.8, "task.corruption": 0.2, "optimizer.learning_rate": 0.001}
TRANSFORMER = RunSpec().updated(
    {**_SELECTED, "model.kind": "transformer", "model.scaling": "sqrt-d", "training.steps": 3000}
)
# The authors' program can give each module a rate of its own, with which logits and scores are divided by d, and
# embeddings not decayed. With these rates, found on single networks (docs/settings.md), the embedding becomes about as
# periodic as in Figure 7(a), though not every seed finds the rule in time.
MODULE_RATES = TRANSFORMER.updated(
    {
        "model.module_rates": True,
        "model.scaling": "d",
        "optimizer.decay_embeddings": False,
        "optimizer.learning_rate": 0.03,
    }
)
MODULE_DECAYS = (2.0, 10.0)
DEEP_MLP = RunSpec().updated(
    {**_SELECTED, "model.depth": 3, "model.parameterization": "standard", "training.steps": 5000}
)


def _plan(name: str, base: RunSpec, decays: Sequence[float]) -> Plan:
    axis = Axis.over(DECAY, decays)
    return Plan(name, base, (DATA_FRACTIONS, CORRUPTIONS, axis)).with_seeds(_SEEDS)


TRANSFORMERS = _plan("fig7a", TRANSFORMER, TRANSFORMER_DECAYS)
DEEP_MLPS = _plan("fig7b", DEEP_MLP, MLP_DECAYS)


def _pair(base: RunSpec, decays: Sequence[float]) -> tuple[RunSpec, RunSpec]:
    """A network at α = .8, ξ = .2 with little weight decay, and one with more."""
    less, more = (base.updated({DECAY: decay}) for decay in decays)
    return less, more


LESS_TRANSFORMER, MORE_TRANSFORMER = _pair(TRANSFORMER, TRANSFORMER_DECAYS)
LESS_RATED, MORE_RATED = _pair(MODULE_RATES, MODULE_DECAYS)
LESS_MLP, MORE_MLP = _pair(DEEP_MLP, MLP_DECAYS)

UNKNOWN_OPTIMISER = Cause(
    Reason.UNPUBLISHED,
    "The optimiser scheme behind the figure is not published. With plain AdamW the mean IPR of the embedding rises "
    "from 0.040 to 0.055 only (three seeds); with a rate for each module, which the authors' code can have, it rises "
    "to 0.20 in the mean over five seeds, two of which have not found the rule (transformer-module-rates-periodic). "
    "That takes a learning rate of 0.03; with the printed 0.001 and the printed weight decays, 10 and 50, such a "
    "network hardly learns anything. Of ten settings of one layer and four heads that were tried at α = 0.8, ξ = 0.2, "
    "one shows Full Inversion with such an embedding (docs/settings.md).",
)
DEEP_NETWORKS_SEEN = (
    "The bounds were set after known curves and spectra of such networks had been read. At the quick scale the size of "
    "the networks, and 2.5 times the weight decay, were chosen after trials so that a network inverts: holding there "
    "shows that such a setting exists."
)


def decay_claim(name: str, what: str, plan: Plan, **remarks: Unpack[Remarks]) -> Claim:
    """More weight decay turns memorising cells of a diagram into generalising ones."""
    return Claim(
        name,
        "Section 2.2, Figure 7",
        f"With more weight decay {what} generalises in a larger part of the diagram, at the expense of memorising.",
        (
            Check("growth of the share of generalising cells", share_grown(*GENERALISING), low=0.1, of=plan),
            Check("growth of the share of memorising cells", share_grown(Phase.MEMORIZATION), high=-0.05, of=plan),
        ),
        **remarks,
    )


def phases_claim(name: str, what: str, less: RunSpec, more: RunSpec) -> Claim:
    """A network memorises with little weight decay and inverts fully with more; the bounds are those of Table 2."""
    return Claim(
        name,
        "Section 2.2, Figure 7",
        f"At α = 0.8, ξ = 0.2 {what} memorises the wrong labels with little weight decay and ignores them with more.",
        (
            Check("train accuracy with little", final("train_accuracy"), low=0.9, of=less),
            Check("test accuracy with more", final("test_accuracy"), low=0.9, of=more),
            Check("train accuracy with more", final("train_accuracy"), high=0.85, of=more),
        ),
        seen_before=DEEP_NETWORKS_SEEN,
    )


def stages_claim(name: str, what: str, spec: RunSpec, note: str = "") -> Claim:
    """A network fits its training labels, finds the rule, and drops the wrong labels, in this order."""
    return Claim(
        name,
        "Abstract, Section 2.2",
        f"{what} with weight decay first fits the training labels, then finds the rule, then drops the wrong labels.",
        (
            Check("train accuracy before test accuracy is high", train_before_grokking, 0.9, of=spec),
            Check("both accuracies at their best step", both_high, low=0.9, of=spec),
            Check("steps from the rule to unlearning", steps_to_unlearning, low=0, of=spec),
            Check("train accuracy in the end", final("train_accuracy"), low=0.75, high=0.85, of=spec),
        ),
        note=note,
        seen_before=DEEP_NETWORKS_SEEN,
    )
