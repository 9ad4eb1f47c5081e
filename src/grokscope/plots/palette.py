"""Colours of all figures, which colour-blind readers can tell apart: most are Okabe and Ito's.

One quantity has one colour.
"""

from collections.abc import Sequence

from matplotlib.colors import to_rgb

BLUE, SKY, ORANGE, VERMILION = "#0072B2", "#56B4E9", "#E69F00", "#D55E00"
GREEN, PINK, BLACK = "#009E73", "#CC79A7", "#000000"
VIOLET = "#9911EE"  # not Okabe and Ito's: their orange is like Coexistence, beside which it would stand
BAR_EDGE = "#1a5276"  # of histograms

RGB = tuple[float, float, float]
LEGIBLE = 4.5  # the least contrast of text, by the Web Content Accessibility Guidelines 2.1
_TEXT_COLORS = ("white", "0.1")
Style = tuple[str, str, str]  # label, colour, line
TRAIN: Style = ("train", BLUE, "-")
TEST: Style = ("test", VERMILION, "-")
CLEAN_COLOR = SKY
ACCURACIES: dict[str, Style] = {  # by the column of a curve
    "train_accuracy": TRAIN,
    "test_accuracy": TEST,
    "corrupted_accuracy": ("corrupted: as trained", PINK, "--"),
    "recovered_accuracy": ("corrupted: recovered", GREEN, "-."),
}
INPUT_COLOR, OUTPUT_COLOR = SKY, VIOLET  # ends of a network
TRUTH_COLOR, LABEL_COLOR = GREEN, PINK  # the true answer, and the one that a corrupted example was trained on


def paler(color: RGB | str, white: float) -> RGB:
    """A colour with so much white in it."""
    red, green, blue = to_rgb(color)
    return (red + white * (1 - red), green + white * (1 - green), blue + white * (1 - blue))


def contrast(first: RGB | str, second: RGB | str) -> float:
    """Of two colours, from 1 to 21, as the Web Content Accessibility Guidelines 2.1 define it.

    >>> round(contrast("white", "black"), 1), round(contrast("#767676", "white"), 2)
    (21.0, 4.54)
    """
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: RGB | str) -> float:
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(color)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def text_on(backgrounds: Sequence[RGB | str]) -> tuple[str, str | None]:
    """The colour of text that lies on these colours, and that of a stroke around it, if it needs one.

    >>> text_on(["#5a4fa2"]), text_on(["#8c84be"]), text_on(["#5a4fa2", "#8c84be"])
    (('white', None), ('0.1', None), ('white', '0.1'))
    """
    least = {color: min(contrast(color, background) for background in backgrounds) for color in _TEXT_COLORS}
    best = max(_TEXT_COLORS, key=lambda color: least[color])
    return (best, None) if least[best] >= LEGIBLE else _TEXT_COLORS
