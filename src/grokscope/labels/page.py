"""The worst labels of a table as one HTML page, without scripts."""

import html
from collections.abc import Sequence

from grokscope.labels.reading import LabelledTable
from grokscope.tables import Table

_MOST_COLUMNS = 12  # of the row's own numbers
_STYLE = """body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;color:#222}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.2rem .7rem;text-align:right}
th{border-bottom:2px solid #888;position:sticky;top:0;background:#fff}tr:nth-child(even) td{background:#f4f4f4}
td.label{color:#d55e00;font-weight:600}td.suggested{color:#0072b2;font-weight:600}"""


def worst_labels_page(table: LabelledTable, ranked: Table, count: int) -> str:
    """A page of the first rows of a ranking, each with its own numbers."""
    shown = table.columns[:_MOST_COLUMNS]
    heads = [*ranked, *shown]
    body = []
    for place, values in enumerate(zip(*ranked.values(), strict=True)):
        if place == count:
            break
        row = int(str(ranked["row"][place])) - 1
        own = [f"{number:.6g}" for number in table.numbers[row, : len(shown)]]
        body.append(_row([*map(_text, values), *own], heads))
    title = f"Labels of {table.source.name} that look wrong"
    suspicious = sum(bool(value) for value in ranked["suspicious"])
    left_out = len(table.columns) - len(shown)
    words = f"{suspicious} of {len(table.labels)} labels look wrong; the {len(body)} worst of all are below."
    if left_out:
        words += f" {left_out} more columns are not shown."
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{_STYLE}</style><h1>{html.escape(title)}</h1><p>{words}</p><table><thead><tr>"
        + "".join(f"<th>{html.escape(head)}</th>" for head in heads)
        + f"</tr></thead><tbody>{''.join(body)}</tbody></table></html>\n"
    )


def _row(values: Sequence[str], heads: Sequence[str]) -> str:
    cells = (
        f'<td class="{head}">{html.escape(value)}</td>'
        if head in ("label", "suggested")
        else f"<td>{html.escape(value)}</td>"
        for value, head in zip(values, heads, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
