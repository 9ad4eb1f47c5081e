"""Make this gallery from a store: python docs/gallery/make.py --store DIR. It trains nothing.

Every figure is drawn at the largest scale that is complete in the store, at web size, with the command that makes it
and, if the file is small, the numbers behind it. README.md is the index, ../claims.md the ledger.
"""

import argparse
import io
import sys
from pathlib import Path

from PIL import Image

from grokscope.experiments.captions import caption, command
from grokscope.experiments.catalogue import CLAIMS, EXPERIMENTS
from grokscope.experiments.evidence import Evidence, best_scale
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.reproduction import examine_all
from grokscope.experiments.scale import MIXED, PAPER, QUICK, scales_of
from grokscope.experiments.tables import rounded
from grokscope.outputs import write_file, write_table, write_text
from grokscope.store import Store

HERE = Path(__file__).parent
WEB_DPI = 100
MOST_CSV_BYTES = 400_000
_TWO_SIZES = " The networks of the diagrams are smaller than the others, with more weight decay (`--scale mixed`)."


def main() -> None:
    """Draw what the store has, and name the figures that lack runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=Path("grokscope-runs"))
    parser.add_argument("--grid", help="also look for the paper's diagrams on this grid, such as 5x5")
    parser.add_argument("--seeds", type=int, help="also look for the paper's networks with this number of seeds")
    parser.add_argument("--only", nargs="*", help="names of figures; the ledger and the index are left alone")
    arguments = parser.parse_args()
    store = Store(arguments.store, create=False)
    scales = [PAPER, *scales_of("paper", grid=arguments.grid, seeds=arguments.seeds), MIXED, QUICK]
    entries = []
    evidence_at = {scale: Evidence(store, scale) for scale in scales}
    for experiment in EXPERIMENTS.values():
        if arguments.only and experiment.name not in arguments.only:
            continue
        scale = best_scale(experiment.needs, scales, store)
        evidence = evidence_at[scale]
        if missing := evidence.missing(experiment.needs(scale)):
            sys.stderr.write(f"{experiment.name}: {missing} runs are missing\n")
            continue
        entries.append(make_entry(experiment, evidence))
        sys.stderr.write(f"{experiment.name} {scale.name}\n")
    if not arguments.only:
        write_text(HERE / "README.md", index(entries))
        chosen = [(claim, evidence_at[best_scale(claim.needs, scales, store)]) for claim in CLAIMS.values()]
        findings = examine_all(chosen)
        findings.save(HERE.parent / "claims.md")


def make_entry(experiment: Experiment, evidence: Evidence) -> str:
    """Write the files of one figure; its part of the index."""
    drawing = experiment.drawing(evidence)
    write_picture(drawing, HERE / f"{experiment.name}.png")
    table = write_table(HERE / f"{experiment.name}.csv", rounded(drawing.data))
    made_with = command(experiment, evidence)
    write_text(HERE / f"{experiment.name}.txt", caption(experiment, evidence, made_with))
    links = [f"[settings and runs]({experiment.name}.txt)"]
    if table.stat().st_size > MOST_CSV_BYTES:
        table.unlink()
    else:
        links.append(f"[data]({experiment.name}.csv)")
    return "\n\n".join(
        [
            f"## {experiment.name}: {experiment.title}",
            f"![{experiment.title}]({experiment.name}.png)",
            experiment.caption + (_TWO_SIZES if evidence.scale is MIXED else ""),
            f"`{made_with}` · {' · '.join(links)}",
        ]
    )


def write_picture(drawing: Drawing, path: Path) -> None:
    """As PNG with 256 colours, which for plots look the same and take a third."""
    drawn, small = io.BytesIO(), io.BytesIO()
    drawing.figure.savefig(drawn, format="png", dpi=WEB_DPI)
    with Image.open(drawn) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(small, format="png", optimize=True)
    write_file(path, small.getvalue())


def index(entries: list[str]) -> str:
    """The page of all figures."""
    head = (
        "# Gallery\n\nEvery figure of the paper, and experiments beyond it, as grokscope makes them. Below "
        "each is the command that makes it; its `--scale` says how large the networks "
        "are. At `quick`, diagrams have 5 × 5 cells of networks with p = 59 and N = 300, and single two-layer "
        "networks are the paper's; Transformers and deep MLPs are smaller, with p = 47, d = 64 or N = 160 and 2.5 "
        "times the weight decay. At `mixed` they are smaller in diagrams only, so a figure with both shows networks "
        "of two sizes. The claims about the figures, and what was measured, are in [the ledger](../claims.md). "
        "`make gallery SEEDS=1` makes this page from a store."
    )
    return "\n\n".join([head, *entries]) + "\n"


if __name__ == "__main__":
    main()
