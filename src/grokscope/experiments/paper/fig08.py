"""Figure 8: Forgetting. With very high weight decay the network finds the rule, and then its weights vanish."""

from collections.abc import Callable

from matplotlib import style
from matplotlib.figure import Figure

from grokscope.experiments import tables
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.paper import fig01
from grokscope.experiments.scale import Scale
from grokscope.measure import Row
from grokscope.measure.events import total_norm
from grokscope.plots import STYLE
from grokscope.plots.dynamics import norm_lines
from grokscope.plots.runs import draw_accuracies, draw_columns
from grokscope.spec import RunSpec

FORGETTING = fig01.BASE.updated({"optimizer.weight_decay": 20.0, "training.steps": 5000})
RELU = FORGETTING.updated({"model.activation": "relu"})
# Gradients are tiny beside weight decay 20, so plain gradient descent needs another scale of both. A smaller task with
# more data lets it find the rule within some thousand steps; a search found from which weight decay on it does not.
_DESCENT = FORGETTING.updated(
    {
        "task.modulus": 47,
        "task.data_fraction": 0.8,
        "task.corruption": 0.2,
        "model.width": 240,
        "optimizer.kind": "sgd",
        "optimizer.learning_rate": 150.0,
    }
)
DESCENTS = tuple(_DESCENT.updated({"optimizer.weight_decay": decay}) for decay in (3e-5, 4e-5, 6e-5))


def needs(scale: Scale) -> Needs:
    """One network."""
    return Needs(networks=(FORGETTING,))


def draw(evidence: Evidence) -> Drawing:
    """Accuracies, and Frobenius norms."""
    result = evidence.network(FORGETTING)
    with style.context(STYLE):
        figure = Figure(figsize=(9.4, 3.9))
        accuracies, norms = figure.subplots(1, 2)
        draw_accuracies(accuracies, result)
        accuracies.set_ylabel("accuracy")
        accuracies.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
        draw_columns(norms, result.curve, norm_lines(result), "Frobenius norm")
        norms.set(xlabel="optimisation step", xscale="log")
        norms.set_ylim(bottom=0)
        norms.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    return Drawing(figure, tables.curves({"weight decay 20": result}))


def best_row(evidence: Evidence, spec: RunSpec) -> Row:
    """The curve where test accuracy was highest, for the last time."""
    return max(evidence.network(spec).curve, key=lambda row: (row.test_accuracy, row.step))


def _lost(spec: RunSpec) -> Callable[[Evidence], float]:
    """How much of the best test accuracy is gone in the end."""
    return lambda e: best_row(e, spec).test_accuracy - e.network(spec).final.test_accuracy


def _norm_left(spec: RunSpec) -> Callable[[Evidence], float]:
    """The norm of all weights in the end, over that when test accuracy was highest for the last time."""
    return lambda e: total_norm(e.network(spec).final) / total_norm(best_row(e, spec))


def _norm_settled(spec: RunSpec) -> Callable[[Evidence], float]:
    """The norm of all weights in the end, over that after half of the steps."""

    def value(evidence: Evidence) -> float:
        result = evidence.network(spec)
        half = next(row for row in result.curve if row.step >= result.final.step / 2)
        return total_norm(result.final) / total_norm(half)

    return value


def _distance_from_clean(evidence: Evidence) -> float:
    clean = 1 - evidence.network(FORGETTING).dataset().corruption
    return abs(best_row(evidence, FORGETTING).train_accuracy - clean)


def _decay(spec: RunSpec) -> str:
    return f"{spec.optimizer.weight_decay:g}"


def _claim(name: str, paper: str, statement: str, network: RunSpec, *checks: Check, note: str = "") -> Claim:
    return Claim(name, paper, statement, lambda scale: Needs(networks=(network,), seeds=3), checks, note)


EXPERIMENT = Experiment(
    name="fig08",
    title="Forgetting with very high weight decay",
    caption="At weight decay 20 the network first does what it does in Full Inversion; then both accuracies fall to "
    "guessing while the Frobenius norms of its weights go to zero. α = 0.5, ξ = 0.35, 5000 steps.",
    needs=needs,
    draw=draw,
    claims=(
        _claim(
            "forgetting",
            "Section 2, Appendix E, Figure 8(a)",
            "At weight decay 20 the network inverts fully at first, and then falls to guessing on both sets.",
            FORGETTING,
            Check("best test accuracy", lambda e: best_row(e, FORGETTING).test_accuracy, low=0.99),
            Check("train accuracy at that step, from 1 − ξ", _distance_from_clean, high=0.05),
            Check("test accuracy in the end", lambda e: e.network(FORGETTING).final.test_accuracy, high=0.05),
            Check("train accuracy in the end", lambda e: e.network(FORGETTING).final.train_accuracy, high=0.05),
        ),
        _claim(
            "norms-collapse",
            "Section 2, Appendix E, Figure 8(b)",
            "While the network forgets, the norm of its weights goes to nothing.",
            FORGETTING,
            Check("norm in the end, over that at the best test accuracy", _norm_left(FORGETTING), high=0.05),
        ),
        _claim(
            "no-forgetting-relu",
            "Section 2, Appendices E and N",
            "A ReLU network at the same weight decay does not lose what it has learnt, nor its weights.",
            RELU,
            Check("best test accuracy", lambda e: best_row(e, RELU).test_accuracy, low=0.9),
            Check("test accuracy lost since its best", _lost(RELU), high=0.1),
            Check("norm in the end, over that at the best test accuracy", _norm_left(RELU), low=0.1),
        ),
        Claim(
            "no-forgetting-descent",
            "Section 2, Appendix E",
            "With plain gradient descent no weight decay makes a network forget: gradients and decay come to a "
            "balance, with the rule if the decay is low and without it if it is high.",
            lambda scale: Needs(networks=DESCENTS, seeds=3),
            (
                Check("best test accuracy, wd 3e-5", lambda e: best_row(e, DESCENTS[0]).test_accuracy, low=0.9),
                *(Check(f"test accuracy lost, wd {_decay(spec)}", _lost(spec), high=0.1) for spec in DESCENTS),
                *(
                    Check(f"norm in the end over that at half time, wd {_decay(spec)}", _norm_settled(spec), low=0.5)
                    for spec in DESCENTS
                ),
            ),
            note="These networks have p = 47, N = 240, α = 0.8, ξ = 0.2 and learning rate 150, settings at which "
            "gradient descent finds the rule; they were looked for first, so the bounds were not written blindly.",
        ),
    ),
)
