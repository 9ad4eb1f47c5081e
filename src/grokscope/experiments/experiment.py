"""What every figure is: the runs it needs, how it is drawn from them, and what the paper claims about them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from grokscope.experiments.claim import Claim
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.scale import Scale

Table = dict[str, Sequence[object]]  # columns of one length


@dataclass(frozen=True)
class Drawing:
    """A picture, and the numbers that it shows."""

    figure: Figure
    data: Table


@dataclass(frozen=True)
class Experiment:
    """A figure or table of the paper, or an experiment beyond it.

    `needs` and `draw` speak of the paper's own specs and plans; scale and evidence translate.
    """

    name: str  # fig01
    title: str  # a line for the list
    caption: str  # what is to be seen, in our words; settings and run ids are added to it
    needs: Callable[[Scale], Needs]
    draw: Callable[[Evidence], Drawing]
    claims: tuple[Claim, ...] = ()
    unavailable: str = ""  # why it cannot be made, if it cannot
