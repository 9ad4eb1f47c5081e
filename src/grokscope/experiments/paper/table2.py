"""Table 2: the accuracies that define the phases, each beside a network that is in it."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from grokscope.experiments.cause import Cause, Reason
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.paper.fig03 import CORRUPTIONS
from grokscope.experiments.paper.table1 import NETWORKS, setting_of
from grokscope.experiments.scale import Scale
from grokscope.experiments.tables import from_rows
from grokscope.phases import Phase
from grokscope.plots.tables import draw_table
from grokscope.result import RunResult

_DEFINITIONS = {  # test accuracy, train accuracy; the table has one column for the last two
    Phase.COEXISTENCE: ("≥ 0.90", "≥ 0.90"),
    Phase.PARTIAL_INVERSION: ("≥ 0.90", "< 0.90, ≥ 1.05 − ξ"),
    Phase.FULL_INVERSION: ("≥ 0.90", "< 1.05 − ξ"),
    Phase.MEMORIZATION: ("< 0.90", "≥ 0.90"),
    Phase.FORGETTING: ("< 0.90, was higher", "< 0.90"),
    Phase.CONFUSION: ("< 0.90 always", "< 0.90"),
}
_OVERLAP_BELOW = 0.15  # of ξ: there 1.05 − ξ is above 0.9


def needs(scale: Scale) -> Needs:
    """One network for each phase."""
    return Needs(networks=tuple(NETWORKS.values()))


def draw(evidence: Evidence) -> Drawing:
    """A row for each phase: its bounds, and the accuracies of a network."""
    results = {phase: evidence.network(spec) for phase, spec in NETWORKS.items()}
    rows = [
        (
            phase.label,
            _DEFINITIONS[phase][0],
            f"{result.final.test_accuracy:.3f}",
            _DEFINITIONS[phase][1],
            f"{result.final.train_accuracy:.3f}",
            result.outcome,
            setting_of(result.spec),
        )
        for phase, result in results.items()
    ]
    headings = ("phase", "test accuracy", "measured", "train accuracy", "measured", "the network is in", "network")
    figure = draw_table(headings, rows, (1.4, 1.5, 0.9, 1.6, 0.9, 1.5, 3.0), [phase.color for phase in results])
    names = ("phase", "test_bound", "test_accuracy", "train_bound", "train_accuracy", "found", "setting")
    return Drawing(figure, {**from_rows(names, rows), "run_id": [result.run_id for result in results.values()]})


def columns_of_table(train: npt.ArrayLike, test: npt.ArrayLike, corruption: float) -> npt.NDArray[np.int64]:
    """In how many of the table's five columns each pair of accuracies is, taking its inequalities word for word."""
    train, test = np.asarray(train), np.asarray(test)
    columns = (
        (test >= 0.9) & (train >= 0.9),
        (test >= 0.9) & (train < 0.9) & (train >= 1.05 - corruption),
        (test >= 0.9) & (train < 1.05 - corruption),
        (test < 0.9) & (train >= 0.9),
        (test < 0.9) & (train < 0.9),
    )
    return np.asarray(np.sum(columns, axis=0))


def in_one_column(corruptions: list[float]) -> float:
    """The fraction of all pairs of accuracies, in steps of half a percent, that are in exactly one column."""
    train, test = np.meshgrid(np.arange(201) / 200, np.arange(201) / 200)
    return float(np.mean([columns_of_table(train, test, corruption) == 1 for corruption in corruptions]))


def _is_in(phase: Phase) -> Callable[[RunResult], float]:
    return lambda result: float(result.phase is phase)


_ALL = [float(str(point[0])) for point in CORRUPTIONS.points]

EXPERIMENT = Experiment(
    name="table2",
    title="The phases in numbers",
    caption="The accuracies that define the phases, with those of one network in each. Forgetting and Confusion have "
    "the same bounds; they differ in whether test accuracy had been high before.",
    needs=needs,
    draw=draw,
    claims=(
        Claim(
            "six-phases",
            "Section 2, Table 2",
            "There are networks in each of six phases.",
            tuple(Check(f"is in {phase.label}", _is_in(phase), low=1, of=spec) for phase, spec in NETWORKS.items()),
        ),
        Claim(
            "phases-partition",
            "ours, on Table 2",
            "Every pair of train and test accuracies belongs to one column of the table and no other.",
            (
                Check(
                    "accuracies in exactly one column, ξ ≥ 0.15",
                    lambda: in_one_column([xi for xi in _ALL if xi >= _OVERLAP_BELOW]),
                    low=1,
                ),
                Check(
                    "accuracies in exactly one column, ξ < 0.15",
                    lambda: in_one_column([xi for xi in _ALL if xi < _OVERLAP_BELOW]),
                    low=1,
                ),
            ),
            cause=Cause(
                Reason.CONTRADICTION, "Below ξ = 0.15 the columns Coexistence and Full Inversion of Table 2 overlap."
            ),
            note="Below ξ = 0.15 the bound 1.05 − ξ is above 0.9, so train accuracies between the two meet the "
            "definitions of both Coexistence and Full Inversion. Here they count as Coexistence, which comes first.",
        ),
    ),
)
