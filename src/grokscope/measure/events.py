"""What happened in a training curve, and when: memorising, grokking, unlearning, forgetting, the collapse of the norms.

A curve knows the network only at measured steps. An event at measured step `step` happened after the measured step
before it, `after`, and what came and went between two measurements is not seen.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from grokscope.errors import GrokscopeError
from grokscope.measure.measurement import Row
from grokscope.phases import HIGH_ACCURACY, Phase, classify

MEMORISED_SHARE = 0.5  # of the corrupted examples; with less there is nothing much to unlearn
UNLEARNED_SHARE = 0.5  # of the most corrupted examples that were ever memorised at once
COLLAPSED_SHARE = 0.1  # of the largest norm; weight decay alone takes a network that works to a half or a fifth


def phases_along(curve: Sequence[Row], corruption: float) -> list[Phase]:
    """For each row, what the run would be called if it had ended there."""
    best = accumulate((row.test_accuracy for row in curve), max)
    return [
        classify(row.train_accuracy, row.test_accuracy, corruption, so_far)
        for row, so_far in zip(curve, best, strict=True)
    ]


@dataclass(frozen=True)
class Event:
    """Something that happened, or not: then both steps are None. `after` is 0 if it was so when first measured."""

    step: int | None  # the first measured step at which it is so
    after: int | None  # the measured step before
    words: str

    def describe(self) -> str:
        """The event with its steps, as a sentence without a full stop."""
        if self.step is None or self.after is None:
            return self.words
        if self.step == self.after + 1:
            return f"at step {self.step}: {self.words}"
        return f"after step {self.after}, by step {self.step}: {self.words}"


@dataclass(frozen=True)
class Delay:
    """Steps from memorising to grokking; negative if the rule was found first."""

    measured: int  # between the measured steps
    at_least: int  # what the measured steps leave possible
    at_most: int


@dataclass(frozen=True)
class TrainingEvents:
    """The events of one run, each a step or in words why there is none."""

    memorised: Event  # train accuracy ≥ 90 %, with at least half of the corrupted examples memorised
    grokked: Event  # test accuracy ≥ 90 %
    unlearned: Event  # corrupted accuracy below half of its maximum, the maximum being at least one half
    forgot: Event  # test accuracy < 90 % from here to the end, after it had been high
    collapsed: Event  # √(‖U‖² + ‖V‖² + ‖W‖²) below a tenth of its maximum
    delay: Delay | None  # None unless both memorised and grokked

    def events(self) -> dict[str, Event]:
        """By name, in the order of the story."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Event)}


def training_events(curve: Sequence[Row]) -> TrainingEvents:
    """Find the events of a curve.

    >>> from grokscope import RunSpec, run
    >>> spec = RunSpec().updated({"task.modulus": 11, "model.width": 32, "training.steps": 5})
    >>> training_events(run(spec).curve).grokked.step is None
    True
    """
    if not curve:
        raise GrokscopeError("the run diverged before it was first measured: it has no curve")
    memorised, grokked = _memorised(curve), _grokked(curve)
    return TrainingEvents(
        memorised=memorised,
        grokked=grokked,
        unlearned=_unlearned(curve),
        forgot=_forgot(curve, grokked),
        collapsed=_collapsed(curve),
        delay=_delay(memorised, grokked),
    )


def total_norm(row: Row) -> float:
    """√(‖U‖² + ‖V‖² + ‖W‖²) over those that the network has."""
    return math.sqrt(sum(norm**2 for norm in (row.norm_u, row.norm_v, row.norm_w) if not math.isnan(norm)))


def _memorised(curve: Sequence[Row]) -> Event:
    corrupted = not math.isnan(curve[0].corrupted_accuracy)
    place = _first(
        curve,
        lambda row: (
            row.train_accuracy >= HIGH_ACCURACY and (not corrupted or row.corrupted_accuracy >= MEMORISED_SHARE)
        ),
    )
    if place is None:
        best = max(curve, key=lambda row: row.train_accuracy)
        share = f" with {best.corrupted_accuracy:.1%} of the corrupted labels" if corrupted else ""
        return _never(
            f"never memorised: train accuracy was at most {best.train_accuracy:.1%}, at step {best.step}{share}"
        )
    row = curve[place]
    share = f" and {row.corrupted_accuracy:.1%} of the corrupted ones" if corrupted else "; no label is corrupted"
    return _at(curve, place, f"memorised {row.train_accuracy:.1%} of the training labels{share}")


def _grokked(curve: Sequence[Row]) -> Event:
    place = _first(curve, lambda row: row.test_accuracy >= HIGH_ACCURACY)
    if place is None:
        best = max(curve, key=lambda row: row.test_accuracy)
        return _never(f"never grokked: test accuracy was at most {best.test_accuracy:.1%}, at step {best.step}")
    return _at(curve, place, f"grokked: test accuracy {curve[place].test_accuracy:.1%}")


def _unlearned(curve: Sequence[Row]) -> Event:
    if math.isnan(curve[0].corrupted_accuracy):
        return _never("nothing to unlearn: no label is corrupted")
    peak = max(range(len(curve)), key=lambda i: curve[i].corrupted_accuracy)
    best = curve[peak].corrupted_accuracy
    had = f"{best:.1%} of the corrupted labels, at step {curve[peak].step}"
    if best < MEMORISED_SHARE:
        return _never(f"nothing to unlearn: it never memorised more than {had}")
    place = _first(curve, lambda row: row.corrupted_accuracy < UNLEARNED_SHARE * best, start=peak)
    if place is None:
        least = min(row.corrupted_accuracy for row in curve[peak:])
        return _never(f"never unlearned: it memorised {had}, and never less than {least:.1%} after that")
    row = curve[place]
    return _at(
        curve,
        place,
        f"unlearned: it keeps {row.corrupted_accuracy:.1%} of the corrupted labels and answers "
        f"{row.recovered_accuracy:.1%} truly; it had {had}",
    )


def _forgot(curve: Sequence[Row], grokked: Event) -> Event:
    if grokked.step is None:
        return _never("nothing to forget: it never grokked")
    if curve[-1].test_accuracy >= HIGH_ACCURACY:
        return _never(f"not forgotten: test accuracy is {curve[-1].test_accuracy:.1%} in the end")
    place = 1 + max(i for i, row in enumerate(curve) if row.test_accuracy >= HIGH_ACCURACY)
    row = curve[place]
    return _at(
        curve,
        place,
        f"forgot the rule for good: test accuracy {row.test_accuracy:.1%}, with weights of norm {total_norm(row):.3g}; "
        f"{curve[-1].test_accuracy:.1%} in the end",
    )


def _collapsed(curve: Sequence[Row]) -> Event:
    norms = [total_norm(row) for row in curve]
    peak = max(range(len(curve)), key=norms.__getitem__)
    place = next((i for i in range(peak, len(curve)) if norms[i] < COLLAPSED_SHARE * norms[peak]), None)
    had = f"{norms[peak]:.3g}, at step {curve[peak].step}"
    what, end = "the norm of the input and output weights", f"{norms[-1]:.3g}"
    if place is None:
        return _never(f"no collapse: {what} was at most {had}, and is {end} in the end")
    return _at(curve, place, f"{what} collapsed to {norms[place]:.3g} from {had}; it ends at {end}")


def _delay(memorised: Event, grokked: Event) -> Delay | None:
    """Grokking happened at one of the steps after + 1 … step, and so did memorising."""
    if memorised.step is None or memorised.after is None or grokked.step is None or grokked.after is None:
        return None
    return Delay(
        measured=grokked.step - memorised.step,
        at_least=grokked.after + 1 - memorised.step,
        at_most=grokked.step - (memorised.after + 1),
    )


def _first(curve: Sequence[Row], applies: Callable[[Row], bool], start: int = 0) -> int | None:
    return next((i for i in range(start, len(curve)) if applies(curve[i])), None)


def _at(curve: Sequence[Row], place: int, words: str) -> Event:
    return Event(curve[place].step, curve[place - 1].step if place else 0, words)


def _never(words: str) -> Event:
    return Event(None, None, words)
