"""The Transformers and three-layer MLPs of Figure 7, of which Figures 12 to 14 have relatives."""

from collections.abc import Sequence

from grokscope.experiments.cause import Cause, Reason
from grokscope.experiments.paper.fig03 import CORRUPTIONS, DATA_FRACTIONS
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


def specs() -> list[RunSpec]:
    """Two Transformers, two with a rate for each module and two MLPs at α = .8, ξ = .2: each first with little weight
    decay, then with more.
    """
    kinds = ((TRANSFORMER, TRANSFORMER_DECAYS), (MODULE_RATES, MODULE_DECAYS), (DEEP_MLP, MLP_DECAYS))
    return [base.updated({DECAY: decay}) for base, decays in kinds for decay in decays]


LESS_TRANSFORMER, MORE_TRANSFORMER, LESS_RATED, MORE_RATED, LESS_MLP, MORE_MLP = specs()

UNKNOWN_OPTIMISER = Cause(
    Reason.UNPUBLISHED,
    "The optimiser scheme behind the figure is not published. With plain AdamW the mean IPR of the embedding rises "
    "from 0.040 to 0.051 only; with a rate for each module, which the authors' code can have, it rises to 0.20 in "
    "the mean over five seeds (transformer-module-rates-periodic). That takes a learning rate of 0.03; with the "
    "printed 0.001 and the printed weight decays, 10 and 50, such a network learns nothing. Of ten settings of one "
    "layer and four heads that were tried without dropout, one shows Full Inversion with such an embedding "
    "(docs/settings.md).",
)
DEEP_NETWORKS_SEEN = (
    "The bounds were set after known curves and spectra of such networks had been read. At the quick scale the size of "
    "the networks, and 2.5 times the weight decay, were chosen after trials so that a network inverts: holding there "
    "shows that such a setting exists."
)
