"""The page as files: HTML, a style, plain ES modules, and plotly.js from its Python package."""

from importlib.resources import files as resources

_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
PLOTLY = "plotly.js"


def files() -> dict[str, tuple[bytes, str]]:
    """Every file of the page by its name, with its content type."""
    found = {}
    for file in resources("grokscope.explorer.page").iterdir():
        kind = _KINDS.get(f".{file.name.rpartition('.')[2]}")
        if kind:
            found[file.name] = (file.read_bytes(), kind)
    return found | {PLOTLY: (plotly_source(), _KINDS[".js"])}


def plotly_source() -> bytes:
    """plotly.js, minified."""
    return resources("plotly").joinpath("package_data", "plotly.min.js").read_bytes()
