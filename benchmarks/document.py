"""`python -m benchmarks.document`: put what was measured on each kind of CPU into docs/performance.md."""

import json
import re
from pathlib import Path
from typing import Any

from grokscope.outputs import write_text

DOCUMENT = Path("docs/performance.md")


def markdown_table(content: dict[str, Any]) -> str:
    """The rows as a table, with what was aimed at."""
    lines = [
        f"Measured on {content['machine']}, instruction level {content['level']}.",
        "",
        "| work | grokscope | × eager (aim) | × JAX (aim) | of the FMA peak (aim) |",
        "|---|---|---|---|---|",
    ]
    for row in content["rows"]:
        cells = [row["work"], f"{row['grokscope']:.4g} {row['unit']}"]
        for baseline in ("eager", "jax"):
            ratio = f"{row['grokscope'] / row[baseline]:.2f}" if row[baseline] else ""
            aim = row[f"target_{baseline}"]
            cells.append(f"{ratio} ({aim:g})" if aim and ratio else ratio)
        share = f"{row['of_peak']:.0%}" if row["of_peak"] else ""
        cells.append(f"{share} ({row['target_peak']:.0%})" if row["target_peak"] and share else share)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def replace_results(document: Path, text: str) -> None:
    """Replace what stands between the marks of a page."""
    marked = re.compile(r"(<!-- results -->\n).*?(\n<!-- end of results -->)", re.DOTALL)
    page, count = marked.subn(lambda match: match[1] + text + match[2], document.read_text(encoding="utf-8"))
    if count != 1:
        raise SystemExit(f"{document} needs one place marked <!-- results --> and <!-- end of results -->")
    write_text(document, page)


def main() -> None:
    """Put the tables into the docs."""
    results = sorted(Path("benchmarks").glob("results-*.json"))
    if not results:
        raise SystemExit("there are no benchmarks/results-*.json here: run `python -m benchmarks` in the repository")
    tables = [markdown_table(json.loads(path.read_text(encoding="utf-8"))) for path in results]
    replace_results(DOCUMENT, "\n\n".join(tables))


if __name__ == "__main__":
    main()
