"""Wrong labels in tables of one's own: the estimator, reading, and the page."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

sklearn = pytest.importorskip("sklearn")

from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import estimator_checks_generator  # noqa: E402

from grokscope.labels.auditor import LabelAuditor  # noqa: E402
from grokscope.labels.page import worst_labels_page  # noqa: E402
from grokscope.labels.reading import LabelledTable, TableError, read_csv, read_npy, read_parquet  # noqa: E402
from grokscope.measure.audit.detection import auroc  # noqa: E402
from grokscope.tables import Table  # noqa: E402

FAST: dict[str, Any] = {"epochs": 3, "weight_decays": (1.0,), "folds": 3}


def clusters(rows: int = 240, wrong: float = 0.2) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Three clouds that do not touch, and labels of which some are those of another cloud."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=rows)
    X = 4 * np.eye(3)[truth] + 0.4 * rng.normal(size=(rows, 3))
    flipped = rng.random(rows) < wrong
    y = np.where(flipped, (truth + rng.integers(1, 3, size=rows)) % 3, truth)
    return X, np.array(["ant", "bee", "cat"])[y], flipped


def name_of(check: Any) -> str:
    """Without the address of an object, which every process has its own of."""
    return str(getattr(check, "func", check).__name__)


CHECKS = [check for _, check in estimator_checks_generator(LabelAuditor(**FAST))]


@pytest.mark.parametrize("check", CHECKS, ids=map(name_of, CHECKS))
def test_scikit_learn_accepts_the_estimator(check: Any) -> None:
    check(LabelAuditor(**FAST))


def test_wrong_labels_are_found_and_right_ones_suggested() -> None:
    X, y, wrong = clusters(120)
    auditor = LabelAuditor(epochs=15).fit(X, y)
    assert (auditor.suspicious_ == wrong).mean() > 0.97
    assert auroc(auditor.scores_, wrong) > 0.97  # type: ignore[operator]
    assert set(auditor.suggested_) == {"ant", "bee", "cat"}
    assert (auditor.suggested_[~wrong] == y[~wrong]).mean() > 0.97
    assert auditor.held_out_accuracy_[auditor.weight_decay_] == max(auditor.held_out_accuracy_.values())


def test_the_same_state_gives_the_same_scores_and_another_gives_others() -> None:
    X, y, _ = clusters(60)
    first, again, other = (LabelAuditor(**FAST, random_state=state).fit(X, y) for state in (0, 0, 1))
    np.testing.assert_array_equal(first.scores_, again.scores_)
    assert not np.array_equal(first.scores_, other.scores_)


def test_the_scale_of_a_column_says_nothing() -> None:
    X, y, _ = clusters(60)
    plain, scaled = (LabelAuditor(**FAST).fit(numbers, y) for numbers in (X, X * [1e6, 1e-6, 1] + [0, 5, -1e3]))
    np.testing.assert_allclose(plain.scores_, scaled.scores_, rtol=1e-3, atol=1e-3)


def test_a_state_may_be_a_generator_or_none() -> None:
    X, y, _ = clusters(60)
    first, again = (LabelAuditor(**FAST, random_state=np.random.RandomState(5)).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.scores_, again.scores_)
    first, again = (LabelAuditor(**FAST, random_state=None).fit(X, y) for _ in range(2))
    assert not np.array_equal(first.scores_, again.scores_)


def test_every_training_is_counted() -> None:
    X, y, _ = clusters(60)
    seen: list[tuple[int, int]] = []
    LabelAuditor(epochs=1, weight_decays=(1, 2, 2), folds=3).fit(X, y, on_training=lambda *step: seen.append(step))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]  # two weight decays on one part, then the other two parts


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"weight_decays": ()}, "name one or more"),
        ({"weight_decays": (1, -1)}, "none below 0"),
        ({"folds": 1}, "folds = 1 is not allowed: must be at least 2"),
        ({"epochs": 0}, "epochs = 0 is not allowed: must be at least 1"),
    ],
)
def test_what_makes_no_sense_is_refused(parameters: dict[str, Any], message: str) -> None:
    X, y, _ = clusters(60)
    with pytest.raises(ValueError, match=message):
        LabelAuditor(**FAST | parameters).fit(X, y)


def test_it_is_the_end_of_a_pipeline() -> None:
    X, y, _ = clusters(60)
    pipeline = make_pipeline(StandardScaler(), LabelAuditor(**FAST)).fit(X, y)
    assert pipeline[-1].scores_.shape == (60,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, np.full(len(y), "ant")), "all labels are the same class"),
        (lambda X, y: (X, np.arange(len(y))), "different labels for 60 rows"),
        (lambda X, y: (np.where(X > 4, np.nan, X), y), "NaN"),
        (lambda X, y: (X[:-1], y), "inconsistent numbers of samples"),
        (lambda X, y: (X, np.arange(len(y)) // 10 + 0.5), "Unknown label type"),
    ],
)
def test_what_cannot_be_audited_is_refused(change: Any, message: str) -> None:
    X, y, _ = clusters(60)
    with pytest.raises(ValueError, match=message):
        LabelAuditor(**FAST).fit(*change(X, y))


# ---- files ----------------------------------------------------------------------------------------------------------

GOOD = "id,a,b,kind\n" + "\n".join(f"n{i},{i},{i * i},{'odd' if i % 2 else 'even'}" for i in range(12))


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "data.csv"
    path.write_text(text)
    return path


def test_a_table_is_read(tmp_path: Path) -> None:
    table = read_csv(written(tmp_path, "\ufeff" + GOOD + "\n\n"), "kind", ["id"])
    assert table.columns == ("a", "b")
    np.testing.assert_array_equal(table.numbers[3], [3, 9])
    assert table.labels[:2].tolist() == ["even", "odd"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no column 'kind': it has no columns"),
        (GOOD.replace("kind", "kinds"), "did you mean 'kinds'"),
        (GOOD, "column 'id' has 'n0' in row 1, which is not a number; leave the column out with --ignore id"),
        (GOOD.replace("n5,5,", "n5,,"), "column 'a' has '' in row 6"),
        (GOOD.replace("n5,5,", "n5,nan,"), "column 'a' has nan in row 6"),
        (GOOD.replace("n5,5,", "n5,inf,"), "column 'a' has inf in row 6"),
        (GOOD.replace("n5,5,25,odd", "n5,5,25,"), "row 6 has no label"),
        (GOOD.replace("n5,5,", "n5,5,5,"), "line 7: 5 values for 4 columns"),
        (GOOD.replace("odd", "even"), "all labels are 'even'"),
        ("a,a,kind\n1,2,3", "two columns of the same name: 'a'"),
        ("kind\n" + "x\n" * 12, "no column of numbers beside the label"),
        ("a,kind\n" + "".join(f"1,{i}\n" for i in range(12)), "12 different labels for 12 rows"),
        ("a,kind\n1,x\n2,y", "has 2 rows"),
        ('a,kind\n"1,x', "cannot read"),
    ],
)
def test_bad_tables_are_one_line(text: str, message: str, tmp_path: Path) -> None:
    ignored = [] if "which is not a number" in message else ["id"]
    path = written(tmp_path, text)
    with pytest.raises(TableError) as refused:
        read_csv(path, "kind", ignored if "id" in text.split("\n")[0] else [])
    assert message in str(refused.value)


def test_missing_and_binary_files(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="there is no file"):
        read_csv(tmp_path / "none.csv", "kind")
    (tmp_path / "latin.csv").write_bytes("größe,kind\n".encode("latin-1"))
    with pytest.raises(TableError, match="not text in UTF-8"):
        read_csv(tmp_path / "latin.csv", "kind")
    with pytest.raises(TableError, match="it is a directory"):
        read_csv(tmp_path, "kind")


def test_arrays_are_read_and_checked(tmp_path: Path) -> None:
    X, y, _ = clusters(30)
    paths = tmp_path / "X.npy", tmp_path / "y.npy"
    np.save(paths[0], X.reshape(30, 3, 1))
    np.save(paths[1], y)
    np.testing.assert_array_equal(read_npy(*paths).numbers, X)
    np.save(paths[1], y[:-1])
    with pytest.raises(TableError, match=r"their shapes are \[30, 3, 1\] and \[29\]"):
        read_npy(*paths)
    np.save(paths[1], y)
    X[4, 1] = np.inf
    np.save(paths[0], X)
    with pytest.raises(TableError, match="row 5 has NaN or infinity"):
        read_npy(*paths)
    np.save(paths[0], np.ones((30, 2)))
    np.save(paths[1], np.array([0.0, np.nan] * 15))
    with pytest.raises(TableError, match=r"y\.npy: row 2 has no label"):
        read_npy(*paths)
    np.save(paths[0], np.array([{}] * 30), allow_pickle=True)
    with pytest.raises(TableError, match="cannot read"):  # nothing in a file is run
        read_npy(*paths)


def test_parquet_is_read_as_csv_is(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = written(tmp_path, GOOD)
    pandas.read_csv(path).to_parquet(tmp_path / "data.parquet")
    first, second = read_csv(path, "kind", ["id"]), read_parquet(tmp_path / "data.parquet", "kind", ["id"])
    np.testing.assert_array_equal(first.numbers, second.numbers)
    assert first.labels.tolist() == second.labels.tolist()
    (tmp_path / "data.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(TableError, match="cannot read"):
        read_parquet(tmp_path / "data.parquet", "kind")


def test_without_pyarrow_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TableError, match="pip install pandas pyarrow"):
        read_parquet(tmp_path / "data.parquet", "kind")


class _Cells(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)


def test_what_is_in_a_table_is_text_on_the_page() -> None:
    nasty = "<script>alert(1)</script>"
    table = LabelledTable(Path(f"{nasty}.csv"), (nasty,), np.ones((3, 1)), np.array([nasty, "b", "b"]))
    ranked: Table = {
        "rank": [1, 2, 3],
        "row": [1, 2, 3],
        "label": [nasty, "b", "b"],
        "suggested": ["b", nasty, "b"],
        "score": [2.0, 1.0, -1.0],
        "suspicious": [True, True, False],
    }
    parser = _Cells()
    parser.feed(worst_labels_page(table, ranked, 2))
    assert "script" not in parser.tags
    assert parser.tags.count("tr") == 3  # the heads and two rows
