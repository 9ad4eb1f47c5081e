"""Figure 19: training curves with growing dropout."""

from grokscope.experiments import tables
from grokscope.experiments.cause import Cause, Reason
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.dense import BANDS, SEEDS, densely
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.paper import fig01
from grokscope.experiments.quantities.curves import final, final_difference
from grokscope.experiments.scale import Scale
from grokscope.phases import HIGH_ACCURACY
from grokscope.plots.runs import draw_seeds
from grokscope.result import RunResult
from grokscope.spec import RunSpec

DROPOUTS = (0.0, 0.3, 0.6, 0.9)


def specs() -> dict[float, RunSpec]:
    """The default setting at α = .5, ξ = .35, by dropout probability."""
    return {dropout: fig01.BASE.updated({"model.dropout": dropout}) for dropout in DROPOUTS}


def needs(scale: Scale) -> Needs:
    """Four networks."""
    return Needs(networks=tuple(map(densely, specs().values())), seeds=SEEDS)


def draw(evidence: Evidence) -> Drawing:
    """Curves side by side."""
    networks = {f"dropout {dropout:g}": evidence.seeds_of(densely(spec), SEEDS) for dropout, spec in specs().items()}
    return Drawing(draw_seeds(networks), tables.curves_of_seeds(networks))


# ---- what the claims measure ------------------------------------------------------------------------------------


def _best_test(result: RunResult) -> float:
    return max(row.test_accuracy for row in result.curve)


_NONE, _SOME, _MUCH, _TOO_MUCH = specs().values()


EXPERIMENT = Experiment(
    name="fig19",
    title="Training curves with dropout",
    caption="Accuracies during training at α = 0.5 and ξ = 0.35 with four dropout probabilities. Dropout keeps the "
    "network from memorising; with too much of it the network learns neither the rule nor all of the labels. "
    f"{BANDS}",
    needs=needs,
    draw=draw,
    claims=(
        Claim(
            "dropout-unmemorises",
            "Abstract (iii), Figure 19",
            "The more dropout, the fewer corrupted labels are memorised.",
            (
                Check(
                    "corrupted accuracy, dropout 0 minus 0.3",
                    final_difference("corrupted_accuracy"),
                    low=0.1,
                    of=(_NONE, _SOME),
                ),
                Check(
                    "corrupted accuracy, dropout 0.3 minus 0.6",
                    final_difference("corrupted_accuracy"),
                    low=0.1,
                    of=(_SOME, _MUCH),
                ),
            ),
        ),
        Claim(
            "dropout-keeps-the-rule",
            "Sections 2.1 and 3.2, Figure 19",
            "With moderate dropout the network still finds the rule, and inverts.",
            tuple(
                Check(f"{name} at dropout {spec.model.dropout:g}", final(column), low, high, of=spec)
                for spec in (_SOME, _MUCH)
                for name, column, low, high in (
                    ("test accuracy", "test_accuracy", HIGH_ACCURACY, 1.0),
                    ("train accuracy", "train_accuracy", 0.6, HIGH_ACCURACY),
                )
            ),
        ),
        Claim(
            "dropout-confuses",
            "Section 2, Figure 19(d)",
            "With very high dropout the network never finds the rule, nor memorises all of the labels.",
            (
                Check("train accuracy at dropout 0.9", final("train_accuracy"), high=HIGH_ACCURACY, of=_TOO_MUCH),
                Check("best test accuracy at dropout 0.9", _best_test, high=HIGH_ACCURACY, of=_TOO_MUCH),
            ),
        ),
        Claim(
            "narrow-networks-confuse",
            "Section 2",
            "Very high dropout makes a network effectively narrow: one with the 50 neurons that dropout 0.9 leaves of "
            "500 cannot memorise its labels either.",
            (
                Check("train accuracy, N 50 without dropout", final("train_accuracy"), high=0.9, of=fig01.NARROW),
                Check("best test accuracy, N 50 without dropout", _best_test, high=0.9, of=fig01.NARROW),
                Check("corrupted accuracy, N 500 without dropout", final("corrupted_accuracy"), low=0.9, of=_NONE),
            ),
            stated="2026-11-17",
            cause=Cause(
                Reason.SEEDS,
                "The narrow network does not memorise (train accuracy 0.652 over three seeds), but its best test "
                "accuracy is 0.934 ± 0.055, on both sides of the bound: some of them find the rule.",
            ),
            seen_before="Stated after the network of 500 neurons had been measured.",
        ),
    ),
)
