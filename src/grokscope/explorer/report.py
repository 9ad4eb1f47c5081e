"""The page as one file, to attach to an e-mail or a paper: no server, no network, the data inside.

    write_report(store, ["fig3a"], Path("report.html"))
    write_report(store, ["fig3a"], Path("report.html"), recorded=read_outcomes(Path("docs/data")))

The data are the answers that the server would give, by their paths. Every run has its curve and the IPR of its neurons.
Networks that were kept are taken apart as long as there is room; then the vectors of their neurons are added, evenly
over the diagram. Runs that the store lacks may be known from tables of cells: of those there is the outcome.
"""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from grokscope.errors import GrokscopeError
from grokscope.explorer import diagrams, networks, page, paper, runs, views
from grokscope.explorer import models as m
from grokscope.outputs import write_text
from grokscope.store import Store
from grokscope.sweeps.plan import Plan
from grokscope.sweeps.recorded import NOTHING_RECORDED, Recorded

MOST_BYTES = 15_000_000
_CURVE = ("step", "train_accuracy", "test_accuracy", "corrupted_accuracy", "recovered_accuracy")
_PACKED = 3.2  # bytes of JSON that make one byte of a report: gzip takes most away, base64 gives a third back

Answers = dict[str, Any]
OnRun = Callable[[int, int], None]  # how many are done, and of how many


def write_report(
    store: Store,
    sweeps: Sequence[str],
    out: Path,
    *,
    recorded: Recorded = NOTHING_RECORDED,
    most_bytes: int = MOST_BYTES,
    on_run: OnRun = lambda done, total: None,
    on_network: OnRun = lambda done, total: None,
) -> Path:
    """Write the diagrams of these sweeps, and all of their runs. Calls back when a run is read or a network done."""
    views_of = [diagrams.diagram_view(store, name, recorded) for name in dict.fromkeys(sweeps)]
    fixed = len(_html(b""))
    answers = _answers(store, views_of, recorded, on_run)
    room = _PACKED * (most_bytes - fixed) - len(json.dumps(answers))
    kept = _kept(answers)
    # What all networks have in common first: the vectors of the neurons of one take as much as ten networks without.
    for done, (part, run_id) in enumerate(product((_network, _neurons), kept), 1):
        more = part(store, run_id)
        room -= len(json.dumps(more))
        if room < 0:
            break
        answers |= more
        on_network(done, 2 * len(kept))
    content = _html(_packed(answers))
    if len(content) > most_bytes:
        raise GrokscopeError(
            f"the report would have {len(content) / 1e6:.0f} MB, and {most_bytes / 1e6:.0f} are allowed; "
            "name fewer sweeps at once"
        )
    return write_text(out, content.decode())


def _answers(store: Store, sweeps: Sequence[m.DiagramView], recorded: Recorded, on_run: OnRun) -> Answers:
    """What the server would answer, without what needs weights."""
    answers: Answers = {
        "/api/store": _plain(views.store_view(store, allow_train=False, report=True)),
        "/api/sweeps": {
            "sweeps": [one for one in _plain(views.sweep_list(store))["sweeps"] if one["name"] in _names(sweeps)]
        },
    }
    known: dict[str, float | None] = {}
    listed: list[Any] = []
    run_ids = list(dict.fromkeys(chain.from_iterable(map(_run_ids, sweeps))))
    only_recorded = _only_recorded(store, sweeps, recorded)
    for done, run_id in enumerate(run_ids, 1):
        view = only_recorded.get(run_id) or runs.run_view(store, run_id)
        answers[f"/api/runs/{run_id}"] = _plain(_shortened(view))
        if view.state in ("finished", "diverged"):
            listed.append(_plain(_listed(view)))
        on_run(done, len(run_ids))
    for sweep in sweeps:
        answers[f"/api/sweeps/{sweep.name}"] = _plain(sweep)
        for panel in range(len(sweep.panels)):
            for quantity in diagrams.FINAL_COLUMNS:
                path = f"/api/sweeps/{sweep.name}/colors/{quantity}?panel={panel}"
                answers[path] = _plain(diagrams.color_view(store, sweep.name, panel, quantity))
            path = f"/api/sweeps/{sweep.name}/colors/{diagrams.GROKKED}?panel={panel}"
            answers[path] = _plain(diagrams.grokked_view(store, sweep.name, panel, known, most=10**9))
    answers |= _paper(store, _names(sweeps), recorded)
    newest = sorted(listed, key=lambda run: str(run["finished_at"]), reverse=True)
    return answers | {"/api/runs": {"total": len(newest), "offset": 0, "runs": newest}}


def _only_recorded(store: Store, sweeps: Sequence[m.DiagramView], recorded: Recorded) -> dict[str, m.RunView]:
    """The runs of these sweeps that the store lacks and tables know."""
    found: dict[str, m.RunView] = {}
    for name in _names(sweeps) if recorded else ():
        cells = store.cells_and_damaged(name)[0]
        specs = Plan.stored(name, diagrams.find(store, name).definition).specs()
        for spec, cell in zip(specs, cells, strict=True):
            if cell.outcome is None and (there := recorded.get(cell.run_id)):
                found[cell.run_id] = runs.recorded_view(spec, there)
    return found


def _paper(store: Store, sweeps: set[str], recorded: Recorded) -> Answers:
    """The figures that can be drawn from these sweeps alone, and the claims about them."""
    figures = paper.made_from(store, sweeps, recorded)
    names = dict.fromkeys(chain(*(each.claims for each in figures)))
    claims = [paper.claim_view(store, name, recorded) for name in names]
    measured = {claim.name for claim in claims if not claim.missing}
    return {
        "/api/figures": _only(paper.figure_list(), {each.name for each in figures}),
        "/api/claims": _only(paper.claim_list(), measured),
        **{f"/api/claims/{claim.name}": _plain(claim) for claim in claims if claim.name in measured},
        **{
            f"/api/figures/{each.name}": _plain(each) | {"claims": [name for name in each.claims if name in measured]}
            for each in figures
        },
        **{
            f"/api/figures/{each.name}/picture": _data_address(paper.figure_picture(store, each.name, recorded))
            for each in figures
        },
    }


def _only(items: paper.PaperList, names: set[str]) -> Any:
    return {"items": [_plain(item) for item in items.items if item.name in names]}


def _data_address(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _names(sweeps: Sequence[m.DiagramView]) -> set[str]:
    return {sweep.name for sweep in sweeps}


def _run_ids(sweep: m.DiagramView) -> list[str]:
    return list(chain.from_iterable(seeds for panel in sweep.panels for seeds in panel.run_ids))


def _shortened(view: m.RunView) -> m.RunView:
    """Without what can do without: columns that the page does not draw, digits that nobody sees, the last traceback."""
    neurons = view.neurons and view.neurons.model_copy(
        update={"ipr": [_short(value) for value in view.neurons.ipr], "gini": [], "norm": None}
    )
    curve = {name: [_short(value) for value in view.curve[name]] for name in _CURVE if name in view.curve}
    return view.model_copy(update={"neurons": neurons, "curve": curve, "traceback": None})


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _listed(view: m.RunView) -> m.RunSummary:
    last = {name: values[-1] if (values := view.curve.get(name)) else None for name in _CURVE}
    return m.RunSummary(
        run_id=view.run_id,
        finished_at=view.finished_at or "",
        outcome=view.phase or "diverged",
        words=view.settings,
        name=view.name,
        tags=view.tags,
        train_accuracy=last["train_accuracy"],
        test_accuracy=last["test_accuracy"],
        has_weights=view.has_weights,
        damaged=False,
    )


def _kept(answers: Answers) -> list[str]:
    """The networks that were kept, in an order that covers every diagram evenly."""
    kept = [
        view["run_id"]
        for path, view in answers.items()
        if path.startswith("/api/runs/") and view["has_weights"] and view["state"] == "finished"
        if not view["own_code"]
    ]
    return [kept[place] for place in _spread(len(kept))]


def _network(store: Store, run_id: str) -> Answers:
    """What is known of a network with its weights."""
    return {f"/api/runs/{run_id}/network": _plain(networks.network_view(networks.network_of(store, run_id)))}


def _neurons(store: Store, run_id: str) -> Answers:
    """The vectors and spectra of all its neurons."""
    views = networks.neuron_views(networks.network_of(store, run_id))
    return {f"/api/runs/{run_id}/neurons/{view.neuron}": _plain(view) for view in views}


def _spread(count: int) -> list[int]:
    """All places, each far from those before it: ordered by the bits of their number read backwards.

    >>> _spread(5)
    [0, 4, 2, 1, 3]
    """
    bits = max(1, (count - 1).bit_length())
    return sorted(range(count), key=lambda place: int(f"{place:0{bits}b}"[::-1], 2))


def _plain(view: BaseModel) -> Any:
    return view.model_dump(mode="json")


def _packed(answers: Answers) -> bytes:
    text = json.dumps(answers, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0))


# ---- one file ------------------------------------------------------------------------------------------------------


def _html(data: bytes) -> bytes:
    """The page with its style, its scripts and its data inside. Only these scripts may run, and nothing is loaded."""
    files = {name: content for name, (content, _) in page.files().items()}
    scripts = [_inline(files[page.PLOTLY]), _inline(bundle(files))]
    allowed = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(each).digest()).decode()}'" for each in scripts)
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'"
    )
    plotly, own = scripts
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'.encode()
        + b"<style>" + files["style.css"] + b"</style>\n"
    )  # fmt: skip
    tail = (
        b'<script type="application/gzip" id="report-data">' + data + b"</script>\n"
        b"<script>" + plotly + b"</script>\n"
        b'<script type="module">' + own + b"</script>\n"
    )  # fmt: skip
    html = re.sub(rb"<(link|script)\b[^>]*>(</script>)?\n", b"", files["index.html"])
    before, _, after = html.partition(b"</head>")
    start, _, end = after.rpartition(b"</body>")
    return before + head + b"</head>" + start + tail + b"</body>" + end


def _inline(script: bytes) -> bytes:
    """A script that does not end the element it stands in."""
    return script.replace(b"</script", b"<\\/script")


def bundle(files: dict[str, bytes]) -> bytes:
    """All ES modules of the page as one: those that others import first, without imports and exports.

    Names at the top of the modules are therefore different in all of them.
    """
    done: dict[str, str] = {}

    def add(name: str) -> None:
        if name not in done:
            done[name] = ""  # modules that import each other: functions find each other all the same
            text = files[name].decode()
            for imported in re.findall(r'^import .* from "\./(.+)";$', text, re.MULTILINE):
                add(imported)
            body = re.sub(r'^import .* from ".+";\n', "", text, flags=re.MULTILINE)
            order.append(re.sub(r"^export ", "", body, flags=re.MULTILINE))

    order: list[str] = []
    add("app.js")
    return "\n".join(order).encode()
