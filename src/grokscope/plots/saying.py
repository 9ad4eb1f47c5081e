"""A panel that has nothing to show says why.

say_instead(axes, "the task has no waves")
"""

from textwrap import fill

from matplotlib.axes import Axes


def say_instead(axes: Axes, words: str) -> None:
    """Words in place of data, without a scale: axes that are shared keep theirs elsewhere."""
    axes.set_axis_off()
    axes.annotate(fill(words, 30), (0.5, 0.5), xycoords="axes fraction", ha="center", va="center")
