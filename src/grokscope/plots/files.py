"""How figures look, and how they are written."""

import io
from pathlib import Path

from matplotlib import style
from matplotlib.figure import Figure

from grokscope.errors import GrokscopeError
from grokscope.outputs import write_file

STYLE = Path(__file__).with_name("grokscope.mplstyle")


def save_figure(figure: Figure, path: Path) -> Path:
    """Write the figure in the format of the path's ending; the absolute path."""
    check_figure_path(path)
    return write_file(path, figure_bytes(figure, path.suffix[1:]))


def figure_bytes(figure: Figure, kind: str = "png", dots_per_inch: int | None = None) -> bytes:
    """The figure as the content of a file: drawn in memory, because a file that is half drawn is of no use."""
    content = io.BytesIO()
    with style.context(STYLE):
        figure.savefig(content, format=kind, dpi=dots_per_inch)  # None: what the style says
    return content.getvalue()


def check_figure_path(path: Path) -> None:
    """Refuse a path whose ending names no format, before anything is computed for it."""
    if path.suffix not in (".png", ".pdf", ".svg"):
        raise GrokscopeError(f"--out = {str(path)!r} is not allowed: must end in .png, .pdf or .svg")
