"""Names, tags and notes of runs: found again, kept by whatever happens to the store, and no part of a run."""

import json
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grokscope as gs
from grokscope.store.check import Kind, check_store
from grokscope.store.index import open_index
from grokscope.store.merge import merge_into
from grokscope.store.remarks import Remarks, checked_tag
from grokscope.store.schema import REMARKS_SEAL

WORDS = st.text("abcxyz0189_", min_size=1, max_size=5)
REMARKS = st.builds(
    lambda name, tags, note: Remarks(name and f"n-{name}", tuple(sorted(tags)), note.strip()),
    st.none() | WORDS,
    st.sets(WORDS, max_size=4),
    st.text("ab \n", max_size=6),
)


@pytest.fixture(scope="module")
def results() -> list[gs.RunResult]:
    base = gs.RunSpec().updated({"task.modulus": 7, "model.width": 8, "training.steps": 3})
    return [gs.run(base.updated({"training.seed": seed})) for seed in range(3)]


@pytest.fixture
def store(tmp_path: Path, results: list[gs.RunResult]) -> gs.Store:
    store = gs.Store(tmp_path / "store")
    for result in results:
        store.save(result)
    return store


def test_what_is_said_is_found_again(store: gs.Store, results: list[gs.RunResult]) -> None:
    first, second, third = (result.run_id for result in results)
    assert store.tag(first, "good", "old").tags == ("good", "old")
    assert store.tag(first[:8], "new", remove=["old", "never-there"]).tags == ("good", "new")
    store.tag(second, "good")
    store.set_name(first, "baseline")
    store.set_note(first, "two\nlines ")
    found = gs.Store(store.path, create=False).resolve("baseline")
    assert (found.run_id, found.name, found.tags, found.note) == (first, "baseline", ("good", "new"), "two\nlines")
    assert store.load("baseline").run_id == first
    assert {run.run_id for run in store.runs("tag=good")} == {first, second}
    assert [run.run_id for run in store.runs("tag!=good")] == [third]
    assert [run.run_id for run in store.runs(["tag=good", "tag=new"])] == [first]
    assert [run.run_id for run in store.runs("name=baseline")] == [first]
    assert {run.run_id for run in store.runs("name!=baseline")} == {second, third}
    assert store.runs(sort="name")[-1].run_id == store.runs(sort="-name")[0].run_id == first
    row = gs.open(store.path).where("name=baseline").runs.iloc[0]
    assert (row["name"], row["tags"], row["note"]) == ("baseline", "good new", "two\nlines")
    assert json.loads(json.dumps(found.to_dict()))["tags"] == ["good", "new"]
    assert found.spec.run_id == first, "it is no part of the run"


def test_what_is_said_can_be_taken_back(store: gs.Store, results: list[gs.RunResult]) -> None:
    run_id = results[0].run_id
    store.tag(run_id, "good")
    store.set_name(run_id, "baseline")
    store.set_note(run_id, "a note")
    store.set_name(run_id, "")
    store.set_note(run_id, "")
    assert store.tag(run_id, remove="good") == store.resolve(run_id)
    assert store.remarks() == {}
    assert list((store.path / "remarks").iterdir()) == []
    assert store.set_name(results[1].run_id, "baseline").name == "baseline"


@pytest.mark.parametrize("tag", ["two words", "", "+good", "-bad", "a\nb", "a\0b", "x" * 61, "a,b", "\u202egood", "#a"])
def test_odd_tags_are_refused_in_one_line(store: gs.Store, results: list[gs.RunResult], tag: str) -> None:
    with pytest.raises(gs.SpecError, match="is not allowed: must be letters and digits") as raised:
        store.tag(results[0].run_id, tag)
    assert "\n" not in str(raised.value)
    assert not store.remarks()


def test_odd_names_and_notes_are_refused(store: gs.Store, results: list[gs.RunResult]) -> None:
    first, second = results[0].run_id, results[1].run_id
    with pytest.raises(gs.SpecError, match="could be the beginning of a run's id"):
        store.set_name(first, "decade")
    with pytest.raises(gs.SpecError, match="the closed-form network"):
        store.set_name(first, "analytic:7:8")
    with pytest.raises(gs.SpecError, match="without control characters"):
        store.set_note(first, "a\x1b[31m")
    with pytest.raises(gs.SpecError, match="at most 4,000"):
        store.set_note(first, "x" * 5000)
    with pytest.raises(gs.SpecError, match="cannot be both added and removed"):
        store.tag(first, "a", remove=["a"])
    with pytest.raises(gs.SpecError, match="at most 50"):
        store.tag(first, *(f"t{number}" for number in range(51)))
    with pytest.raises(gs.SpecError, match="compared with = or !="):
        store.runs("tag>good")
    with pytest.raises(gs.SpecError, match="cannot be sorted by tag"):
        store.runs(sort="tag")
    store.set_name(first, "baseline")
    with pytest.raises(gs.StoreError, match=f"run {first} is called baseline already"):
        store.set_name(second, "baseline")
    with pytest.raises(gs.StoreError, match="did you mean 'baseline'"):
        store.load("basline")
    with pytest.raises(gs.StoreError, match=r"there is no run 'zzz'.*`grokscope runs list` shows them"):
        store.load("zzz")


def test_a_run_that_is_done_again_keeps_them_and_a_deleted_one_does_not(
    store: gs.Store, results: list[gs.RunResult]
) -> None:
    run_id = results[0].run_id
    store.tag(run_id, "good")
    store.save(replace(results[0], seconds=9.0), weights=True)
    assert (store.resolve(run_id).seconds, store.resolve(run_id).tags) == (9.0, ("good",))
    store.delete(run_id)
    store.save(results[0])
    assert store.resolve(run_id).tags == ()
    assert list((store.path / "remarks").iterdir()) == []


def test_a_new_index_has_them_from_their_files(store: gs.Store, results: list[gs.RunResult]) -> None:
    store.tag(results[0].run_id, "good")
    store.set_name(results[1].run_id, "baseline")
    before = store.remarks()
    store.close()
    for file in store.path.glob("index.sqlite*"):
        file.unlink()
    assert all(finding.repair for finding in check_store(store.path, repair=True))
    assert gs.Store(store.path).remarks() == before
    assert not list(check_store(store.path))


def test_lost_files_are_written_again(store: gs.Store, results: list[gs.RunResult]) -> None:
    store.tag(results[0].run_id, "good")
    (file,) = (store.path / "remarks").iterdir()
    content = file.read_bytes()
    for damage in (
        file.unlink,
        lambda: file.write_text("{}"),
        lambda: file.write_bytes(content.replace(b"good", b"evil")),
    ):
        damage()
        assert [finding.kind for finding in check_store(store.path)] == [Kind.COPY]
        list(check_store(store.path, repair=True))
        assert file.read_bytes() == content


def test_a_changed_entry_is_left_out_and_mended(store: gs.Store, results: list[gs.RunResult]) -> None:
    run_id = results[0].run_id
    store.tag(run_id, "good")
    with sqlite3.connect(store.path / "index.sqlite") as index:
        index.execute("UPDATE remarks SET tags = '[\"evil\"]'")
    index.close()
    with pytest.warns(match=f"left out: tags, name or note of run {run_id}"):
        assert store.runs()[0].tags == ()
    (finding,) = check_store(store.path, repair=True)
    assert (finding.kind, finding.repair) == (Kind.REMARKS, "entered again from their file")
    assert store.resolve(run_id).tags == ("good",)


@pytest.mark.parametrize(
    ("run_id", "tags"), [("../../outside", '["a"]'), (None, "no json"), (None, '{"a": 1}'), (None, "3")]
)
def test_forged_entries_are_damaged_and_lead_nowhere(
    store: gs.Store, results: list[gs.RunResult], run_id: str | None, tags: str
) -> None:
    index = open_index(store.path, create=False)
    forged = run_id or results[0].run_id
    index.execute("INSERT INTO remarks VALUES (?, NULL, ?, '', '')", (forged, tags))
    index.execute(f"UPDATE remarks SET seal = {REMARKS_SEAL}")
    index.close()
    with pytest.warns(match="left out: tags, name or note of run"):
        assert store.remarks() == {}
    (finding,) = check_store(store.path, repair=True)
    assert (finding.kind, finding.repair) == (Kind.REMARKS, "removed")
    assert len(store.runs()) == 3
    assert not list(store.path.parent.rglob("outside*"))


def test_a_store_without_them_is_brought_up_to_date(store: gs.Store, results: list[gs.RunResult]) -> None:
    store.close()
    with sqlite3.connect(store.path / "index.sqlite") as index:
        index.execute("DROP TABLE remarks")
        index.execute("PRAGMA user_version = 3")
    index.close()
    assert gs.Store(store.path).tag(results[0].run_id, "good").tags == ("good",)


def test_a_merge_keeps_what_both_say(store: gs.Store, results: list[gs.RunResult], tmp_path: Path) -> None:
    first, second, third = (result.run_id for result in results)
    other = gs.Store(shutil.copytree(store.path, tmp_path / "other"))
    store.tag(first, "mine", "same")
    store.set_name(first, "best")
    store.set_note(first, "my note")
    store.set_name(second, "taken")
    other.tag(first, "same", "theirs")
    other.set_name(first, "other-best")
    other.set_note(first, "their note")
    other.set_name(third, "taken")
    for _ in range(2):  # a merge can be repeated
        merged = merge_into(store, [other])
        assert store.remarks()[first] == Remarks("best", ("mine", "same", "theirs"), "my note\ntheir note")
        assert store.remarks()[third].name == "taken-2"
        assert ("other-best", "best") in merged.other_names
    assert merged.differing == []


def test_a_merge_says_which_runs_have_other_numbers(
    store: gs.Store, results: list[gs.RunResult], tmp_path: Path
) -> None:
    other = gs.Store(tmp_path / "other")
    changed = replace(results[1], curve=(*results[1].curve[:-1], gs.Row({**results[1].final, "test_accuracy": 0.125})))
    other.save(results[0])
    other.save(changed)
    merged = merge_into(store, [other])
    assert (merged.present, merged.differing) == (2, [results[1].run_id])
    assert store.load(results[1].run_id).final == results[1].final, "its own stays"


@given(REMARKS, REMARKS)
def test_joining_remarks_twice_changes_nothing(mine: Remarks, theirs: Remarks) -> None:
    joined = mine.joined(theirs)
    assert joined.joined(theirs) == joined
    assert mine.joined(Remarks()) == mine
    assert Remarks().joined(mine) == mine
    assert Remarks.from_dict(json.loads(json.dumps(mine.to_dict()))) == mine


@given(st.text())
def test_a_tag_has_nothing_that_a_shell_or_a_terminal_would_read(text: str) -> None:
    try:
        tag = checked_tag(text)
    except gs.SpecError:
        return
    assert tag == text
    assert tag.isprintable()
    assert not set(tag) & set(" ,#\"'`$;|&<>(){}[]*?!\\")
