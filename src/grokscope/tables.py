"""Tables as columns of one length: for CSV files and for pandas.

>>> csv_text({"step": [1, 2], "phase": ["confusion", None]})
'step,phase\\n1,confusion\\n2,\\n'
"""

import csv
import importlib
import io
import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from grokscope.errors import GrokscopeError

if TYPE_CHECKING:
    import pandas as pd

Table = dict[str, Sequence[object]]  # columns of one length
Value = bool | int | float | str | None  # what a place in a table of another program can have


def csv_text(columns: Mapping[str, Sequence[object]]) -> str:
    """A line of names, and a line for each row; what is None is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def plain(value: object) -> Value:
    """A value that other programs can keep: a list as text with commas, as the command line takes it.

    >>> plain(0.5), plain([3, 4]), plain({"bits": 2})
    (0.5, '3,4', '{"bits": 2}')
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(item, int | str) for item in value):
        return ",".join(map(str, value))
    return json.dumps(value)


def html_table(columns: Mapping[str, Sequence[object]]) -> str:
    """The same for a notebook.

    >>> html_table({"a<b": [1, None]})
    '<table><thead><tr><th>a&lt;b</th></tr></thead><tbody><tr><td>1</td></tr><tr><td></td></tr></tbody></table>'
    """
    heads = "".join(f"<th>{escape(name)}</th>" for name in columns)
    rows = (
        "".join(f"<td>{'' if value is None else escape(str(value))}</td>" for value in row)
        for row in zip(*columns.values(), strict=True)
    )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def data_frame(columns: Mapping[str, Sequence[object]]) -> "pd.DataFrame":
    """The same as a table of pandas."""
    return optional_module("pandas").DataFrame(dict(columns))


def optional_module(name: str) -> Any:
    """A library that is needed only to hand results on."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise GrokscopeError(f"this needs {name}, which is not installed: pip install 'grokscope[export]'") from None
