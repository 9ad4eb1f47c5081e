"""Fields and values of a sweep in a few letters.

>>> short_field("model.width"), short_field("task.kind"), short_value("task.kind", "my_rules.py:Parity@0123")
('width', 'task', 'Parity')
"""

from collections.abc import Mapping

from grokscope.extension import short_name
from grokscope.spec import REFERENCES


def short_field(path: str) -> str:
    """A field without its section; a kind by what it is a kind of."""
    section, _, field = path.partition(".")
    return section if field == "kind" else field


def short_value(path: str, value: object) -> str:
    """A value as it is written; a user's code by the name of its class."""
    return short_name(value) if path in REFERENCES and isinstance(value, str) else str(value)


def said(fields: Mapping[str, object]) -> dict[str, object]:
    """The fields that a point sets; where points have fields of their own, those of the others are None.

    >>> said({"model.kind": "mlp", "model.width": 64, "model.embed": None})
    {'model.kind': 'mlp', 'model.width': 64}
    """
    return {path: value for path, value in fields.items() if value is not None or len(fields) == 1}
