"""Beyond the paper: how much of a network can be pruned, depending on its width, the task and the data?"""

import math
from collections.abc import Callable
from typing import NamedTuple

from grokscope.experiments.beyond.prunable_picture import draw_prunable
from grokscope.experiments.cause import Cause, Reason
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.evidence import Evidence, Needs, View
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.paper import fig01
from grokscope.experiments.quantities.pruned import LOWEST, curves_by_ipr
from grokscope.experiments.scale import Scale
from grokscope.phases import HIGH_ACCURACY
from grokscope.result import RunResult
from grokscope.spec import RunSpec
from grokscope.tables import Table

PERIODIC = 0.5  # IPR below which a neuron is counted as one that memorises
VARIED: dict[str, tuple[object, ...]] = {  # one at a time, around the default
    "model.width": (125, 250, 500, 1000, 2000),
    "task.operation": ("add", "subtract", "multiply", "x2+y2"),
    "task.data_fraction": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    "task.corruption": (0.0, 0.1, 0.2, 0.35, 0.5),
}
_FEWER: dict[str, tuple[object, ...]] = {
    "model.width": (250, 500, 1000),
    "task.operation": VARIED["task.operation"],
    "task.data_fraction": (0.4, 0.5, 0.7, 0.9),
    "task.corruption": (0.0, 0.2, 0.35, 0.5),
}


class Prunable(NamedTuple):
    """What can be removed from a network, lowest IPR first."""

    fraction: float  # of the neurons, with test accuracy at most 0.01 lower; NaN if the network does not generalise
    low_ipr: float  # the fraction of neurons that are dead, or have an IPR below .5


def spec(path: str, value: object, decay: float = 0.0) -> RunSpec:
    """The setting of Figure 1 with one field changed."""
    return fig01.BASE.updated({"optimizer.weight_decay": decay, path: value})


def varied(scale: Scale) -> dict[str, tuple[object, ...]]:
    """The values of every field."""
    return VARIED if scale.full else _FEWER


def decays(scale: Scale) -> tuple[float, ...]:
    """The weight decays."""
    return (0.0, 5.0) if scale.full else (0.0,)


def needs(scale: Scale) -> Needs:
    """One field at a time."""
    return Needs(
        networks=tuple(
            spec(path, value, decay)
            for decay in decays(scale)
            for path, values in varied(scale).items()
            for value in values
        )
    )


def prunable(result: RunResult) -> Prunable:
    """How much of a network can be pruned, without training it again."""
    assert result.neurons is not None
    low = float((~(result.neurons.neuron_ipr >= PERIODIC)).mean())
    if result.final.test_accuracy < HIGH_ACCURACY:  # no accuracy to keep
        return Prunable(math.nan, low)
    return Prunable(curves_by_ipr(result)[LOWEST].prunable / result.spec.model.width, low)


def _prunable(path: str, value: object, decay: float = 0.0) -> View:
    return View(spec(path, value, decay), prunable)


def draw(evidence: Evidence) -> Drawing:
    """A panel for each field."""
    found = {
        path: {
            decay: {value: evidence.look(_prunable(path, value, decay)) for value in values}
            for decay in decays(evidence.scale)
        }
        for path, values in varied(evidence.scale).items()
    }
    return Drawing(draw_prunable(found), _table(evidence, found))


def _table(evidence: Evidence, found: dict[str, dict[float, dict[object, Prunable]]]) -> Table:
    rows = [
        (path, value, decay, evidence.network(spec(path, value, decay)), each)
        for path, by_decay in found.items()
        for decay, by_value in by_decay.items()
        for value, each in by_value.items()
    ]
    return {
        "field": [path for path, *_ in rows],
        "value": [value for _, value, *_ in rows],
        "weight_decay": [decay for _, _, decay, _, _ in rows],
        "run_id": [one.run_id for _, _, _, one, _ in rows],
        "test_accuracy": [one.final.test_accuracy for _, _, _, one, _ in rows],
        "prunable": [each.fraction for *_, each in rows],
        "low_ipr": [each.low_ipr for *_, each in rows],
    }


def _more_prunable(first: Prunable, second: Prunable) -> float:
    return first.fraction - second.fraction


def _least(measure: Callable[[Prunable], float]) -> Callable[..., float]:
    """The least over all networks that generalise; NaN if none does."""
    return lambda *every: min((measure(each) for each in every if not math.isnan(each.fraction)), default=math.nan)


def _all_without_decay(scale: Scale) -> list[View]:
    return [_prunable(path, value) for path, values in varied(scale).items() for value in values]


EXPERIMENT = Experiment(
    name="beyond-prunable",
    title="Beyond the paper: how much can be pruned",
    caption="The largest fraction of neurons that can be removed, lowest IPR first, before test accuracy falls by "
    "more than 0.01, in the setting of Figure 1 with one thing changed at a time: the width, the task, the data "
    "fraction, the corruption. For comparison, the fraction of neurons that are not periodic. A cross marks networks "
    "that do not generalise, and so have no accuracy to keep.",
    needs=needs,
    draw=draw,
    claims=(
        Claim(
            "beyond-prunable-all-memorising",
            "beyond the paper",
            "Wherever a network generalises without weight decay, at least half of its neurons can go, and all those "
            "that are not periodic are among them.",
            (
                Check("least prunable fraction", _least(lambda each: each.fraction), low=0.5, of=_all_without_decay),
                Check(
                    "least prunable fraction minus that of IPR below 0.5",
                    _least(lambda each: each.fraction - each.low_ipr),
                    low=-0.05,
                    of=_all_without_decay,
                ),
            ),
            seeds=1,
            cause=Cause(
                Reason.EXPECTATION,
                "Two networks fail, one whose waves the IPR does not see and one that is too narrow to memorise.",
            ),
            note="Two networks fail. One learns x² + y², where the IPR does not see the periodic neurons: none is "
            "above 0.5, and 0.86 of them can go. The other, at the paper's scale only, has 125 neurons, too few to "
            "memorise with: it needs all but 0.05 of them. In every other network that generalises, all neurons below "
            "0.5 can go, and a further tenth of the neurons (seed 0).",
        ),
        Claim(
            "beyond-prunable-width",
            "beyond the paper",
            "Of a wider network a larger fraction can go, since the rule needs a number of neurons and not a fraction.",
            (
                Check(
                    "prunable fraction of 1000 neurons minus that of 250",
                    _more_prunable,
                    low=0.05,
                    of=(_prunable("model.width", 1000), _prunable("model.width", 250)),
                ),
            ),
            cause=Cause(Reason.SETTING, "The widest network does not find the rule, so there is nothing to compare."),
            note="Without weight decay the network of 1000 neurons memorises everything and does not find the rule "
            "(test accuracy 0.03, seed 0), so there is no rule to keep. From 250 to 500 neurons the fraction grows "
            "from 0.70 to 0.86; sublinear-need asks the same with a little weight decay.",
        ),
        Claim(
            "beyond-prunable-task",
            "beyond the paper",
            "Without weight decay as much can be pruned from networks that subtract or multiply as from those that "
            "add.",
            tuple(
                Check(
                    f"prunable fraction, {operation} minus add",
                    _more_prunable,
                    -0.1,
                    0.1,
                    of=(_prunable("task.operation", operation), _prunable("task.operation", "add")),
                )
                for operation in ("subtract", "multiply")
            ),
            note="With weight decay 5 it is not so: 0.37 of the neurons of the network that multiplies can go, and "
            "0.78 of that which adds (seed 0).",
        ),
    ),
)
