"""Figure 7(a): a one-layer Transformer, with little weight decay and with more."""

from grokscope.experiments.cause import Cause, Reason, Superseded
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.paper.deep_networks import (
    DEEP_NETWORKS_SEEN,
    LESS_RATED,
    LESS_TRANSFORMER,
    MORE_RATED,
    MORE_TRANSFORMER,
    TRANSFORMERS,
    UNKNOWN_OPTIMISER,
    decay_claim,
    phases_claim,
    stages_claim,
)
from grokscope.experiments.paper.fig07_picture import Row, draw_rows, needs_of
from grokscope.experiments.quantities.curves import final, final_ratio
from grokscope.experiments.quantities.deep import ipr_growth

ROW = Row("1-layer Transformer", TRANSFORMERS, (LESS_TRANSFORMER, MORE_TRANSFORMER, LESS_RATED, MORE_RATED))

EXPERIMENT = Experiment(
    name="fig07a",
    title="Phase diagrams and IPR of a Transformer",
    caption="A one-layer Transformer with little weight decay and with more: the phases over α and ξ, and the IPR of "
    "the dimensions of its embedding at α = 0.8, ξ = 0.2, with an outline of the same before training. The paper's own "
    "weight decays, 10 and 50, belong to an unpublished optimiser scheme. The diagrams are made with plain AdamW. Full "
    "Inversion is there with more weight decay, as in the paper, but only with much data; with less the Transformer "
    "memorises, where the paper's coexists. With plain AdamW the embedding hardly becomes periodic; with a rate for "
    "each module, as the authors' code can have it (learning rate 0.03), it does, though not every seed finds the rule "
    "in time.",
    needs=lambda scale: needs_of([ROW]),
    draw=lambda evidence: draw_rows(evidence, [ROW]),
    claims=(
        Claim(
            "transformer-embedding-periodic",
            "Hypothesis 2.2, Figure 7(a)",
            "The embedding of a Transformer that generalises is more periodic than it was before training, and than "
            "that of one that memorises.",
            (
                Check("test accuracy", final("test_accuracy"), low=0.9, of=MORE_TRANSFORMER),
                Check("IPR over that at the start", ipr_growth, low=1.1, of=MORE_TRANSFORMER),
                Check(
                    "IPR over that with little weight decay",
                    final_ratio("mean_ipr"),
                    low=1.1,
                    of=(MORE_TRANSFORMER, LESS_TRANSFORMER),
                ),
            ),
            seen_before=DEEP_NETWORKS_SEEN,
            superseded=Superseded(
                ("transformer-embedding-clearly-periodic",),
                "2026-11-17",
                "The figure shows an IPR that at least doubles, from 0.03–0.06 to 0.10–0.28; a tenth more than "
                "noise is not that.",
            ),
        ),
        Claim(
            "transformer-embedding-clearly-periodic",
            "Hypothesis 2.2, Figure 7(a)",
            "The embedding of a Transformer that generalises is at least twice as periodic as before training, and as "
            "that of one that memorises.",
            (
                Check("test accuracy", final("test_accuracy"), low=0.9, of=MORE_TRANSFORMER),
                Check("IPR over that at the start", ipr_growth, low=2, of=MORE_TRANSFORMER),
                Check(
                    "IPR over that with little weight decay",
                    final_ratio("mean_ipr"),
                    low=2,
                    of=(MORE_TRANSFORMER, LESS_TRANSFORMER),
                ),
            ),
            stated="2026-11-17",
            seen_before="Stated after it had been measured for transformer-embedding-periodic.",
            cause=UNKNOWN_OPTIMISER,
        ),
        Claim(
            "transformer-embedding-mode",
            "ours, read off Figure 7(a)",
            "Most dimensions of the embedding of a Transformer in Full Inversion have an IPR of 0.1 to 0.28.",
            (Check("mean IPR", final("mean_ipr"), low=0.1, high=0.28, of=MORE_TRANSFORMER),),
            cause=UNKNOWN_OPTIMISER,
            note="At the quick scale, where it holds, the smaller modulus is the reason: noise alone has a higher IPR "
            "there, 0.083 at p = 47.",
            seen_before=DEEP_NETWORKS_SEEN,
        ),
        Claim(
            "transformer-module-rates-periodic",
            "Hypothesis 2.2, Figure 7(a)",
            "With a rate for each module, as the authors' code can have it, weight decay takes a Transformer from "
            "Memorization to Full Inversion, and its embedding becomes as periodic as in the figure.",
            (
                Check("train accuracy with little weight decay", final("train_accuracy"), low=0.9, of=LESS_RATED),
                Check("test accuracy with little weight decay", final("test_accuracy"), high=0.9, of=LESS_RATED),
                Check("test accuracy with more", final("test_accuracy"), low=0.9, of=MORE_RATED),
                Check("train accuracy with more", final("train_accuracy"), high=0.85, of=MORE_RATED),
                Check("mean IPR with little weight decay", final("mean_ipr"), high=0.06, of=LESS_RATED),
                Check("mean IPR with more", final("mean_ipr"), low=0.1, high=0.28, of=MORE_RATED),
            ),
            seeds=5,
            stated="2026-11-18",
            seen_before="Learning rate and weight decays were chosen among others on single networks of one seed, "
            "after the bounds had been read off Figure 7(a).",
            cause=Cause(
                Reason.SEEDS,
                "Three of five seeds find the rule within the 3000 steps; the other two have a test accuracy of 0.83. "
                "The mean IPR is 0.12 to 0.29; of one of these two it is just above the 0.28 of the figure. With eight "
                "heads all five find the rule, with a mean IPR of 0.21 to 0.28 (transformer-module-rates-heads).",
            ),
            note="Whether the paper used these rates is not known. The learning rate is 0.03; with the printed 0.001 "
            "the network hardly learns anything in 3000 steps.",
        ),
        decay_claim(
            "transformer-decay-generalises",
            "a Transformer",
            TRANSFORMERS,
            cause=Cause(
                Reason.REDUCED,
                "The diagram has 5 × 5 cells of p = 47, d = 64, and its cells at ξ = 0.2 learn the rule but stay "
                "below the 0.9 of Table 2.",
            ),
            note="At the quick scale (p = 47, d = 64) the cells at ξ = 0.2 and α = 0.7 and 0.9 stop memorising and "
            "learn the rule, but stay below the 0.9 of Table 2: their test accuracies, 0.89 and 0.73, count as "
            "Confusion.",
        ),
        phases_claim("transformer-decay-inverts", "a Transformer", LESS_TRANSFORMER, MORE_TRANSFORMER),
        Claim(
            "transformer-decay-turns-coexistence",
            "Figure 7(a)",
            "At α = 0.8, ξ = 0.2 a Transformer is in Coexistence with little weight decay and in Full Inversion with "
            "more.",
            (
                Check("train accuracy with little", final("train_accuracy"), low=0.9, of=LESS_TRANSFORMER),
                Check("test accuracy with little", final("test_accuracy"), low=0.9, of=LESS_TRANSFORMER),
                Check("test accuracy with more", final("test_accuracy"), low=0.9, of=MORE_TRANSFORMER),
                Check("train accuracy with more", final("train_accuracy"), high=0.85, of=MORE_TRANSFORMER),
            ),
            stated="2026-11-19",
            seen_before="Stated after these networks had been measured for transformer-decay-inverts, which does not "
            "ask whether the network with little weight decay generalises.",
            cause=Cause(
                Reason.UNPUBLISHED,
                "The panels have weight decays 10 and 50 in an optimiser scheme that is not published. With plain "
                "AdamW and weight decay 0.5 the network memorises and has not found the rule after the 3000 steps.",
            ),
        ),
        stages_claim(
            "transformer-two-stages",
            "A Transformer",
            MORE_TRANSFORMER,
            note="With p = 47, d = 64 the stages merge: the weight decay that it takes to generalise from so few "
            "examples keeps the network from fitting them first.",
        ),
    ),
)
