"""How figures look, and how they are written."""

from pathlib import Path

from matplotlib import style
from matplotlib.figure import Figure

from grokscope.errors import GrokscopeError

STYLE = Path(__file__).with_name("grokscope.mplstyle")


def save_figure(figure: Figure, path: Path) -> Path:
    """Write the figure in the format of the path's ending; the absolute path."""
    check_figure_path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with style.context(STYLE):
            figure.savefig(path)
    except OSError as error:
        raise GrokscopeError(f"cannot write the figure {path}: {error.strerror or error}") from None
    return path.resolve()


def check_figure_path(path: Path) -> None:
    """Refuse a path whose ending names no format, before anything is computed for it."""
    if path.suffix not in (".png", ".pdf", ".svg"):
        raise GrokscopeError(f"--out = {str(path)!r} is not allowed: must end in .png, .pdf or .svg")
