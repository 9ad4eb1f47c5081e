"""Pictures inside the page that a notebook shows."""

import base64

from matplotlib.figure import Figure

from grokscope.plots.files import figure_bytes

_DOTS_PER_INCH = 72  # small: the picture itself is `plot()`


def inline_image(figure: Figure) -> str:
    """An HTML image that holds its own PNG."""
    png = figure_bytes(figure, dots_per_inch=_DOTS_PER_INCH)
    return f'<img alt="" src="data:image/png;base64,{base64.b64encode(png).decode()}">'
