"""What was measured against its bounds, as a line of text.

>>> from grokscope.experiments.claim import Check, CheckResult
>>> strip(CheckResult(Check("test accuracy", lambda _: 0.0, low=0.9), (0.97, 0.99, 0.85)), width=21)
'···○····[══════●═●═══'

The bounds are [ and ], inside of them is ═. Seeds are ● inside and ○ outside. Where only the mean is known, ─ is the
standard deviation on both sides of it.
"""

import math

from grokscope.experiments.claim import CheckResult
from grokscope.experiments.record import Remembered

_MARGIN = 0.25  # of the range, beyond the outermost number


def strip(result: CheckResult | Remembered, width: int = 33) -> str:
    """The line, without numbers; empty if there was nothing to measure."""
    check = result.check
    points = [value for value in result.values or [result.mean] if not math.isnan(value)]
    if not points:
        return ""
    spread = 0.0 if result.values or math.isnan(result.spread) else result.spread
    numbers = [point + reach for point in points for reach in (-spread, 0, spread)]
    numbers += [bound for bound in (check.low, check.high) if math.isfinite(bound)]
    lowest, highest = min(numbers), max(numbers)
    margin = _MARGIN * (highest - lowest) or _MARGIN * abs(highest) or 1.0
    start, step = lowest - margin, (highest - lowest + 2 * margin) / (width - 1)

    def place(value: float) -> int:
        return min(width - 1, max(0, round((value - start) / step)))

    line = ["═" if check.low <= start + step * column <= check.high else "·" for column in range(width)]
    if spread:
        for column in range(place(result.mean - spread), place(result.mean + spread) + 1):
            line[column] = "─"
    for bound, mark in ((check.low, "["), (check.high, "]")):
        if math.isfinite(bound):
            line[place(bound)] = mark
    for value in points:
        line[place(value)] = "●" if check.allows(value) else "○"
    return "".join(line)
