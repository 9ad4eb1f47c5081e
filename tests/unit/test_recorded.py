"""Diagrams that are known from tables of cells."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grokscope.errors import GrokscopeError
from grokscope.experiments.evidence import Evidence, Needs, known_cells
from grokscope.experiments.scale import PAPER
from grokscope.store import CellOutcome, Store
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.diagram import OUTCOMES, assemble
from grokscope.sweeps.plan import Plan
from grokscope.sweeps.recorded import read_diagram, read_outcomes

ALPHAS = Axis.over("task.data_fraction", (0.1, 0.5, 0.9))
XIS = Axis.over("task.corruption", (0.0, 0.4))
PANELS = {
    "none": (),
    "numbers": (Axis.over("optimizer.weight_decay", (0, 5)),),
    "words": (Axis.over("model.activation", ("relu", "quadratic")),),
    "together": (Axis(("training.batch_size", "training.steps"), ((8, 400), (64, 50), (256, 20))),),
    "two": (Axis.over("optimizer.weight_decay", (0, 5)), Axis.over("model.dropout", (0.0, 0.3))),
    "one value": (Axis.over("optimizer.weight_decay", (15,)),),
}


def cells_of(plan: Plan, names: list[str | None]) -> list[CellOutcome]:
    known = [name is not None and name != "failed" for name in names]
    return [
        CellOutcome(place, spec.run_id, names[place], *((0.875, place / 64) if known[place] else (None, None)))
        for place, spec in enumerate(plan.specs())
    ]


def written(plan: Plan, cells: list[CellOutcome], directory: Path) -> Path:
    path = directory / "cells.csv"
    path.write_text(assemble(plan, cells, refined=False).to_csv())
    return path


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_table_gives_back_its_diagram(data: st.DataObject) -> None:
    seeds = data.draw(st.sampled_from([(), (Axis.over("training.seed", (0, 1, 2)),)]))
    rows = data.draw(st.sampled_from([(), (XIS,)]))
    plan = Plan("cells", axes=(ALPHAS, *rows, *PANELS[data.draw(st.sampled_from(sorted(PANELS)))], *seeds))
    outcome = st.sampled_from([*OUTCOMES, "failed", None])
    cells = cells_of(plan, data.draw(st.lists(outcome, min_size=plan.size, max_size=plan.size)))
    diagram = assemble(plan, cells, refined=False)
    with TemporaryDirectory() as directory:
        read = read_diagram(written(plan, cells, Path(directory)))
    assert [axis.points for axis in read.plan.axes] == [
        axis.points for axis in plan.axes if axis.fields[0] != "training.seed"
    ]
    assert [panel.fields for panel in read.panels] == [panel.fields for panel in diagram.panels]
    if any(cell.runs + cell.failed + cell.missing == plan.seed_count for cell in diagram.all_cells()):
        assert list(read.all_cells()) == list(diagram.all_cells())


def test_recorded_runs_stand_in_for_those_that_a_store_lacks(tmp_path: Path) -> None:
    plan = Plan("cells", axes=(ALPHAS, XIS))
    cells = cells_of(plan, ["memorization", "coexistence", None, "confusion", "failed", "full_inversion"])
    written(plan, cells, tmp_path)
    recorded = read_outcomes(tmp_path)
    assert sorted(recorded) == sorted(cells[place].run_id for place in (0, 1, 3, 5))
    store = Store(tmp_path / "store")
    store.make()
    found = known_cells(store, plan, recorded)
    assert [cell.outcome for cell in found] == [
        "memorization",
        "coexistence",
        None,
        "confusion",
        None,
        "full_inversion",
    ]
    assert [cell.place for cell in found] == list(range(6))
    assert found[5].test_accuracy == 5 / 64
    needs = Needs(diagrams=(plan,))
    assert Evidence(store, PAPER).missing(needs) == 6
    assert Evidence(store, PAPER, recorded).missing(needs) == 2
    assert Evidence(store, PAPER, recorded).diagram(plan).panels[0].cells[1][2].outcome == "full_inversion"


def test_what_seeds_disagree_about_is_not_taken_for_known(tmp_path: Path) -> None:
    plan = Plan("cells", axes=(ALPHAS, Axis.over("training.seed", (0, 1))))
    cells = cells_of(plan, ["memorization", "confusion", "confusion", "coexistence", "confusion", "confusion"])
    written(plan, cells, tmp_path)
    assert {cell.outcome for cell in read_outcomes(tmp_path).values()} == {"confusion"}
    assert read_outcomes(tmp_path)[cells[1].run_id].train_accuracy is None  # the table has only the mean


def test_accuracies_are_taken_from_the_table_that_has_them(tmp_path: Path) -> None:
    """Two seeds share a cell of the one table; the other, which comes later, has one of them alone."""
    several = Plan("cells", axes=(ALPHAS, Axis.over("training.seed", (0, 1))))
    written(several, cells_of(several, ["confusion"] * 6), tmp_path).rename(tmp_path / "a.csv")
    single = Plan("cells", axes=(ALPHAS,))
    cells = cells_of(single, ["confusion"] * 3)
    written(single, cells, tmp_path).rename(tmp_path / "b.csv")
    recorded = read_outcomes(tmp_path)
    assert len(recorded) == 6
    assert [recorded[cell.run_id].test_accuracy for cell in cells] == [cell.test_accuracy for cell in cells]


def test_tables_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    plan = Plan("cells", axes=(ALPHAS,))
    for name in ("confusion", "coexistence"):
        table = written(plan, cells_of(plan, [name] * 3), tmp_path)
        table.rename(tmp_path / f"{name}.csv")
    with pytest.raises(GrokscopeError, match=r"contradict each other about run [0-9a-f]{16}$"):
        read_outcomes(tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: "", "it is empty"),
        (lambda text: "a,b\n1,2\n", "it has no column source"),
        (lambda text: text.replace(",run,", ",dreamt,"), "the source of a cell is 'dreamt'"),
        (lambda text: text.replace("0.875", "high"), "could not convert string to float: 'high'"),
        (lambda text: "".join(text.splitlines(keepends=True)[:-1]), "cells are missing"),
        (lambda text: text.encode().replace(b"0.875", b"\xff\xfe"), "it cannot be read as CSV"),
    ],
)
def test_what_is_no_table_of_cells_is_refused_in_a_line(change: object, words: str, tmp_path: Path) -> None:
    plan = Plan("cells", axes=(ALPHAS, XIS))
    path = written(plan, cells_of(plan, ["confusion"] * 6), tmp_path)
    content = change(path.read_text())  # type: ignore[operator]
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(GrokscopeError) as caught:
        read_diagram(path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_table_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GrokscopeError, match=r"cannot read .*: No such file"):
        read_diagram(tmp_path / "none.csv")
