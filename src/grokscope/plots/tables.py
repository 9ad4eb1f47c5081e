"""Tables as pictures."""

from collections.abc import Sequence

from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from grokscope.plots.files import STYLE


def draw_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[float], colors: Sequence[str]
) -> Figure:
    """Rows of text below headings; widths are relative, colours are those of the small fields before the rows."""
    with style.context(STYLE):
        figure = Figure(figsize=(12, 0.55 + 0.42 * len(rows)))
        axes = figure.subplots()
        axes.axis("off")
        shares = [each / (sum(widths) + _SWATCH) for each in (_SWATCH, *widths)]
        table = axes.table(
            [["", *row] for row in rows],
            colLabels=["", *headings],
            colWidths=shares,
            cellLoc="left",
            colLoc="left",
            bbox=Bbox.unit(),
        )
        table.auto_set_font_size(False)
        table.set_fontsize(9.5)
        for (row, column), cell in table.get_celld().items():
            cell.set_edgecolor("0.85")
            if row == 0:
                cell.set_text_props(fontweight="bold")
            elif column == 0:
                cell.set_facecolor(colors[row - 1])
    return figure


_SWATCH = 0.25
