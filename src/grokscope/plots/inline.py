"""Pictures inside the page that a notebook shows."""

import base64
import io
from html import escape

from matplotlib import style
from matplotlib.figure import Figure

from grokscope.plots.files import STYLE

_DOTS_PER_INCH = 72  # small: the picture itself is `plot()`


def inline_image(figure: Figure, alt: str) -> str:
    """An HTML image that holds its own PNG, with words for who does not see it."""
    png = io.BytesIO()
    with style.context(STYLE):
        figure.savefig(png, format="png", dpi=_DOTS_PER_INCH)
    return (
        f'<img alt="{escape(alt, quote=True)}" src="data:image/png;base64,{base64.b64encode(png.getvalue()).decode()}">'
    )
