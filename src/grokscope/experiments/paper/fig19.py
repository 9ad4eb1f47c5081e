"""Figure 19: training curves with growing dropout."""

from functools import partial

from grokscope.experiments import tables
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.paper import fig01
from grokscope.experiments.scale import Scale
from grokscope.phases import HIGH_ACCURACY
from grokscope.plots import draw_curves
from grokscope.spec import RunSpec

DROPOUTS = (0.0, 0.3, 0.6, 0.9)


def specs() -> dict[float, RunSpec]:
    """The default setting at α = .5, ξ = .35, by dropout probability."""
    return {dropout: fig01.BASE.updated({"model.dropout": dropout}) for dropout in DROPOUTS}


def needs(scale: Scale) -> Needs:
    """Four networks."""
    return Needs(networks=tuple(specs().values()))


def draw(evidence: Evidence) -> Drawing:
    """Curves side by side."""
    results = {f"dropout {dropout:g}": evidence.network(spec) for dropout, spec in specs().items()}
    return Drawing(draw_curves(list(results.values()), list(results)), tables.curves(results))


# ---- what the claims measure ------------------------------------------------------------------------------------


def _final(evidence: Evidence, dropout: float, accuracy: str) -> float:
    return float(getattr(evidence.network(specs()[dropout]).final, accuracy))


def _less_memorised(evidence: Evidence, weaker: float, stronger: float) -> float:
    """By how much the stronger dropout lowers the accuracy on corrupted examples."""
    return _final(evidence, weaker, "corrupted_accuracy") - _final(evidence, stronger, "corrupted_accuracy")


def _best_test(evidence: Evidence, dropout: float) -> float:
    return max(row.test_accuracy for row in evidence.network(specs()[dropout]).curve)


def _claim(name: str, paper: str, statement: str, dropouts: tuple[float, ...], *checks: Check) -> Claim:
    networks = tuple(specs()[dropout] for dropout in dropouts)
    return Claim(name, paper, statement, lambda scale: Needs(networks=networks, seeds=3), checks)


EXPERIMENT = Experiment(
    name="fig19",
    title="Training curves with dropout",
    caption="Accuracies during training at α = 0.5 and ξ = 0.35 with four dropout probabilities. Dropout keeps the "
    "network from memorising; with too much of it the network learns neither the rule nor the labels.",
    needs=needs,
    draw=draw,
    claims=(
        _claim(
            "dropout-unmemorises",
            "Abstract (iii), Figure 19",
            "The more dropout, the fewer corrupted labels are memorised.",
            (0.0, 0.3, 0.6),
            Check("corrupted accuracy, dropout 0 minus 0.3", lambda e: _less_memorised(e, 0.0, 0.3), low=0.1),
            Check("corrupted accuracy, dropout 0.3 minus 0.6", lambda e: _less_memorised(e, 0.3, 0.6), low=0.1),
        ),
        _claim(
            "dropout-keeps-the-rule",
            "Sections 2.1 and 3.2, Figure 19",
            "With moderate dropout the network still finds the rule, and inverts.",
            (0.3, 0.6),
            *(
                Check(f"{name} at dropout {dropout:g}", partial(_final, dropout=dropout, accuracy=field), low, high)
                for dropout in (0.3, 0.6)
                for name, field, low, high in (
                    ("test accuracy", "test_accuracy", HIGH_ACCURACY, 1.0),
                    ("train accuracy", "train_accuracy", 0.6, HIGH_ACCURACY),
                )
            ),
        ),
        _claim(
            "dropout-confuses",
            "Section 2, Figure 19(d)",
            "With very high dropout the network never finds the rule, nor memorises the labels.",
            (0.9,),
            Check("train accuracy at dropout 0.9", lambda e: _final(e, 0.9, "train_accuracy"), high=HIGH_ACCURACY),
            Check("best test accuracy at dropout 0.9", lambda e: _best_test(e, 0.9), high=HIGH_ACCURACY),
        ),
    ),
)
