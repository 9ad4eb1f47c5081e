"""What every figure is: the runs it needs, how it is drawn from them, and what the paper claims about them.

EXPERIMENT = Experiment(
    name="my-figure",
    title="Two networks side by side",
    caption="Accuracies with and without weight decay.",
    needs=lambda scale: Needs(networks=(WITHOUT, WITH)),
    draw=lambda evidence: Drawing(draw_curves(evidence.networks((WITHOUT, WITH)), ["without", "with"]), data),
)
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grokscope.errors import GrokscopeError
from grokscope.experiments.claim import Claim
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.scale import Scale
from grokscope.experiments.tables import rounded
from grokscope.outputs import write_table, write_text
from grokscope.tables import Table, data_frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDINGS = (".png", ".svg", ".pdf", ".csv", ".txt")  # of the files that a drawing is saved as


@dataclass(frozen=True)
class Drawing:
    """A picture, and the numbers that it shows. A notebook shows the picture."""

    figure: "Figure"
    data: Table
    name: str = ""  # that of its experiment; who draws need not give it
    caption: str = ""  # what is to be seen, the exact settings and the runs; added to what was drawn

    def __repr__(self) -> str:
        rows = len(next(iter(self.data.values()), ()))
        return f"<Drawing {self.name or 'without a name'}: {rows} rows of {', '.join(self.data)}>"

    def to_pandas(self) -> Any:
        """The numbers as a pandas DataFrame."""
        return data_frame(self.data)

    def save(self, directory: Path | str) -> Path:
        """Write the picture as .png, .svg and .pdf, the numbers as .csv, the caption as .txt; the path of the .png."""
        from grokscope.plots import save_figure

        base = Path(directory) / (self.name or "figure")
        picture = save_figure(self.figure, base.with_name(f"{base.name}.png"))
        for ending in (".svg", ".pdf"):
            save_figure(self.figure, base.with_name(f"{base.name}{ending}"))
        write_table(base.with_name(f"{base.name}.csv"), rounded(self.data))
        write_text(base.with_name(f"{base.name}.txt"), self.caption)
        return picture

    def _repr_png_(self) -> bytes:
        from grokscope.plots import figure_bytes

        return figure_bytes(self.figure)


@dataclass(frozen=True)
class Experiment:
    """A figure or table of the paper, or an experiment beyond it.

    `needs` and `draw` speak of the paper's own specs and plans; scale and evidence translate.
    """

    name: str  # fig01
    title: str  # a line for the list
    caption: str  # what is to be seen, in our words; settings and run ids are added to it
    needs: Callable[[Scale], Needs] = lambda scale: Needs()
    draw: Callable[[Evidence], Drawing] | None = None  # every experiment has one; a user's may forget it
    claims: tuple[Claim, ...] = ()
    why_unavailable: Callable[[], str] = lambda: ""  # why its runs cannot be done here, if they cannot
    file: str = ""  # of a user's own, which commands call by it

    @property
    def unavailable(self) -> str:
        """Why its runs cannot be done here, in words: the data that it is made from is not here."""
        return self.why_unavailable()

    def drawing(self, evidence: Evidence) -> Drawing:
        """Draw it from runs that are there, with letters for its panels and a line with what all networks share."""
        from grokscope.experiments.subtitle import subtitle
        from grokscope.plots.finishing import finish

        if self.draw is None:
            raise GrokscopeError(f"{self.name} has no draw function")
        drawing = self.draw(evidence)
        if not isinstance(drawing, Drawing):
            raise GrokscopeError(f"draw of {self.name} must return a Drawing, and returned {type(drawing).__name__}")
        finish(drawing.figure, subtitle(self.needs(evidence.scale), evidence.scale))
        return drawing
