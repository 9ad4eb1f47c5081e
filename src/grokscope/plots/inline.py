"""Pictures inside the page that a notebook shows."""

import base64
from html import escape

from matplotlib.figure import Figure

from grokscope.plots.files import figure_bytes

_DOTS_PER_INCH = 72  # small: the picture itself is `plot()`


def inline_image(figure: Figure, alt: str) -> str:
    """An HTML image that holds its own PNG, with words for who does not see it."""
    png = base64.b64encode(figure_bytes(figure, dots_per_inch=_DOTS_PER_INCH)).decode()
    return f'<img alt="{escape(alt, quote=True)}" src="data:image/png;base64,{png}">'
