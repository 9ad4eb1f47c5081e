"""Pages of text and pictures as a PDF.

pages = Pages()
pages.heading("Pruning")
pages.text("Without its low-IPR neurons the network loses the corrupted labels.")
pages.picture(png)
write_file(Path("report.pdf"), pages.pdf())
"""

import io
from textwrap import wrap

from matplotlib import image, rc_context
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 8.27, 11.69  # inches: A4
_MARGIN = 0.7
_ROOM = _WIDTH - 2 * _MARGIN
_POINT = 1 / 72  # of an inch
_SPACING = 1.35  # lines, in sizes of the font
_CHARACTER = 0.5  # the usual width of one, in sizes of the font
_MONO_CHARACTER = 0.603
_MOST_OF_A_PAGE = 0.55  # that a picture takes


class Pages:
    """Pages that are filled from the top; where there is no room left, another one begins."""

    def __init__(self) -> None:
        self._pages: list[Figure] = []
        self._left = 0.0  # inches to the bottom
        self.new_page()

    def new_page(self) -> None:
        """Begin another page."""
        self._pages.append(Figure(figsize=(_WIDTH, _HEIGHT)))
        self._left = _HEIGHT - 2 * _MARGIN

    def need(self, points: float) -> None:
        """Begin another page unless there is this much room on this one."""
        if self._left < points * _POINT:
            self.new_page()

    def heading(self, words: str, size: float = 15) -> None:
        """A line in bold."""
        self.text(words, size=size, bold=True)
        self.space(0.4 * size)

    def text(
        self, words: str, *, size: float = 9, color: str = "black", bold: bool = False, mono: bool = False
    ) -> None:
        """A paragraph; in a font of fixed width a line that is too long is broken, and goes on further right."""
        columns = int(_ROOM / (size * _POINT * (_MONO_CHARACTER if mono else _CHARACTER * (1.1 if bold else 1))))
        lines = wrap(words, columns, subsequent_indent=" " * 35 if mono else "", drop_whitespace=not mono)
        height = size * _SPACING * _POINT
        for line in lines:
            if self._left < height:
                self.new_page()
            self._pages[-1].text(
                _MARGIN / _WIDTH,
                (self._left + _MARGIN) / _HEIGHT,
                line,
                size=size,
                color=color,
                weight="bold" if bold else "normal",
                family="monospace" if mono else "sans-serif",
                va="top",
                parse_math=False,
            )
            self._left -= height

    def space(self, points: float) -> None:
        """Leave some room."""
        self._left -= points * _POINT

    def picture(self, png: bytes) -> None:
        """A picture as wide as the page, or less if it would be too high."""
        pixels = image.imread(io.BytesIO(png))
        rows, columns = pixels.shape[:2]
        width = min(_ROOM, _MOST_OF_A_PAGE * _HEIGHT * columns / rows)
        height = width * rows / columns
        if self._left < height:
            self.new_page()
        bottom = self._left + _MARGIN - height
        axes = self._pages[-1].add_axes((_MARGIN / _WIDTH, bottom / _HEIGHT, width / _WIDTH, height / _HEIGHT))
        axes.imshow(pixels, aspect="auto", interpolation="none")
        axes.set_axis_off()
        self._left -= height
        self.space(6)

    def pdf(self) -> bytes:
        """All pages; the same content gives the same bytes."""
        content = io.BytesIO()
        with rc_context({"pdf.fonttype": 42}), PdfPages(content, metadata={"CreationDate": None}) as file:
            for page in self._pages:
                file.savefig(page)
        return content.getvalue()
