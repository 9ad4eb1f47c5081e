"""Make this gallery and the pages of claims from a store: python docs/gallery/make.py --store DIR. It trains nothing.

Every figure is drawn at the largest scale that is complete in the store, at web size, with the command that makes it
and, if the file is small, the numbers behind it. Cells of diagrams that the store lacks are taken from the tables in
../data and here. A figure or claim for which there is less than when it was last made stays as it is: README.md is the
index, ../claims.md the ledger, and ../claims.json the record that the ledger is made from. With --pages no figure is
drawn, and no store is needed.
"""

import argparse
import io
import json
import math
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from grokscope.experiments.captions import caption, command, description
from grokscope.experiments.catalogue import CLAIMS, EXPERIMENTS, claims_about
from grokscope.experiments.claim import Claim
from grokscope.experiments.claims_page import page
from grokscope.experiments.evidence import Evidence, best_scale
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.record import read_record, record_text, renewed
from grokscope.experiments.report_page import Compute, read_gallery, report, summary_words
from grokscope.experiments.report_pdf import FigurePage, report_pdf
from grokscope.experiments.reproduction import examine_all
from grokscope.experiments.scale import MIXED, PAPER, QUICK, Scale, scales_of
from grokscope.experiments.sections import SECTIONS
from grokscope.experiments.tables import rounded
from grokscope.outputs import write_file, write_table, write_text
from grokscope.store import Store
from grokscope.sweeps.recorded import Recorded, read_outcomes

HERE = Path(__file__).parent
WEB_DPI = 160
MOST_CSV_BYTES = 400_000
_TWO_SIZES = " The networks of the diagrams are smaller than the others, with more weight decay (`--scale mixed`)."


def main() -> None:
    """Draw what the store has, name the figures that lack runs, and make the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=Path("grokscope-runs"))
    parser.add_argument("--cells", type=Path, default=HERE.parent / "data", help="tables of cells that are known")
    parser.add_argument("--grid", help="also look for the paper's diagrams on this grid, such as 5x5")
    parser.add_argument("--seeds", type=int, help="also look for the paper's networks with this number of seeds")
    parser.add_argument("--only", nargs="*", help="names of figures; other figures and their claims are left alone")
    parser.add_argument("--pages", action="store_true", help="make only the pages of claims, without a store")
    parser.add_argument("--pdf", type=Path, help="write the report as a PDF as well, from what is committed")
    arguments = parser.parse_args()
    recorded = {**read_outcomes(HERE, others=True), **read_outcomes(arguments.cells)}
    scales = [PAPER, *scales_of("paper", grid=arguments.grid, seeds=arguments.seeds), MIXED, QUICK]
    chosen = [EXPERIMENTS[name] for name in arguments.only or EXPERIMENTS]
    with TemporaryDirectory() as nothing:
        store = Store(nothing, create=True) if arguments.pages else Store(arguments.store, create=False)
        evidence_at = {scale: Evidence(store, scale, recorded) for scale in scales}
        if not arguments.pages:
            make_figures(chosen, evidence_at, recorded)
        make_pages(chosen, evidence_at, recorded)
    if arguments.pdf:
        write_file(arguments.pdf, pdf_of_the_pages())


def make_figures(chosen: list[Experiment], evidence_at: dict[Scale, Evidence], recorded: Recorded) -> None:
    """Draw what the store has, and renew the index."""
    before = known_entries()
    for experiment in chosen:
        evidence = best_evidence(experiment, evidence_at, recorded)
        scale = evidence.scale
        if missing := evidence.missing(experiment.needs(scale)):
            sys.stderr.write(f"{experiment.name}: {missing} runs are missing\n")
        elif is_worse(scale, before.get(experiment.name, "")):
            sys.stderr.write(f"{experiment.name}: drawn from larger networks before\n")
        else:
            before[experiment.name] = make_entry(experiment, evidence)
            sys.stderr.write(f"{experiment.name} {scale.name}\n")
    known = [EXPERIMENTS[name] for name in EXPERIMENTS if name in before]
    for experiment in known:
        renew_description(HERE / f"{experiment.name}.txt", experiment)
    write_text(HERE / "README.md", index([with_caption(before[each.name], each) for each in known]))


def make_pages(chosen: list[Experiment], evidence_at: dict[Scale, Evidence], recorded: Recorded) -> None:
    """Measure the claims about these figures, and renew the record and the pages."""
    claims = {claim.id for claim in claims_about(chosen)}
    measured = [
        (claim, best_evidence(claim, evidence_at, recorded) if claim.id in claims else evidence_at[QUICK])
        for claim in CLAIMS.values()
    ]
    record = HERE.parent / "claims.json"
    entries = renewed(read_record(record, CLAIMS), examine_all(measured))
    write_text(record, record_text(entries))
    write_text(HERE.parent / "claims.md", page(entries))
    write_text(HERE.parent / "report.md", report(entries, read_gallery(HERE), projected_compute()))


def pdf_of_the_pages() -> bytes:
    """The report as a PDF, with the pictures of the gallery."""
    gallery = read_gallery(HERE)
    entries = list(read_record(HERE.parent / "claims.json", CLAIMS).values())
    figures = [
        FigurePage(
            name,
            EXPERIMENTS[name].title,
            EXPERIMENTS[name].caption,
            "; ".join([gallery[name].command, *gallery[name].remarks]),
            (HERE / f"{name}.png").read_bytes(),
        )
        for section in SECTIONS
        for name in section.figures
    ]
    return report_pdf(figures, entries, summary_words(entries, gallery, projected_compute()))


def projected_compute() -> Compute:
    """What benchmarks/cluster.py projected for everything at the paper's size."""
    measured = json.loads((HERE.parents[1] / "benchmarks" / "cluster.json").read_text(encoding="utf-8"))
    return Compute(measured["paper"]["runs"], measured["paper"]["core_hours"])


def best_evidence(one: Experiment | Claim, evidence_at: dict[Scale, Evidence], recorded: Recorded) -> Evidence:
    """At the largest scale that is complete."""
    store = next(iter(evidence_at.values())).store
    return evidence_at[best_scale(one.needs, list(evidence_at), store, recorded)]


def known_entries() -> dict[str, str]:
    """The parts of the index as it is, by the names of their figures."""
    parts = (HERE / "README.md").read_text(encoding="utf-8").split("\n## ")[1:]
    return {part.partition(":")[0]: f"## {part.rstrip()}" for part in parts}


def with_caption(entry: str, experiment: Experiment) -> str:
    """A part of the index with the caption as it is now: it may have changed since the figure was drawn.

    >>> entry = "## fig08: F\\n\\n![F](fig08.png)\\n\\nOld words.\\n\\n`grokscope figure fig08`"
    >>> with_caption(entry, EXPERIMENTS["fig08"]) == entry.replace("Old words.", EXPERIMENTS["fig08"].caption)
    True
    """
    title, picture, words, *rest = entry.split("\n\n")
    sizes = _TWO_SIZES if words.endswith(_TWO_SIZES) else ""
    return "\n\n".join([title, picture, experiment.caption + sizes, *rest])


def renew_description(path: Path, experiment: Experiment) -> None:
    """The same for the text beside a picture."""
    title, _, *rest = path.read_text(encoding="utf-8").split("\n\n")
    write_text(path, "\n\n".join([title, description(experiment), *rest]))


def is_worse(scale: Scale, entry: str) -> bool:
    """Whether a figure was drawn at a better scale, or on a finer grid, before.

    >>> coarse, coarser = scales_of("paper", grid="9x10")[0], scales_of("paper", grid="5x5")[0]
    >>> [is_worse(coarse, f"--scale{flags}") for flags in (PAPER.flags(), coarser.flags(), QUICK.flags())]
    [True, False, False]
    """
    before = re.search(r" --scale (\w+)(?: --grid (\d+)x(\d+))?", entry)
    if not before:
        return False
    order = [PAPER.name, MIXED.name, QUICK.name]
    name, columns, rows = before.groups()
    cells = int(columns) * int(rows) if columns else math.inf
    return (order.index(name), -cells) < (order.index(scale.name), -math.prod(scale.other_grid or (math.inf,)))


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
    report = HERE / f"{experiment.name}-report.html"
    if report.exists():  # made with `grokscope report`, not by this program
        size = report.stat().st_size / 1e6
        links.append(f"[a page to click on]({report.name}) ({size:.1f} MB; save it and open it)")
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
