"""`python -m benchmarks.audit [--data-dir mnist] [--seeds 5]`: finding wrong labels, beside cleanlab.

Every dataset gets wrong labels of every kind and amount. Grokscope is LabelAuditor as it comes; cleanlab ranks by its
self-confidence, from the cross-validated probabilities of a logistic regression, as in its tutorials, and of a random
forest. Seconds are those of the processor with one thread, because they depend less on what else the machine does.
MNIST is used where it is there. Every result is kept in benchmarks/audit.json as it comes, so the same command goes on
after an interruption; seed after seed is finished. The tables go into docs/audit.md.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from cleanlab.rank import get_label_quality_scores
from rich.progress import track
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.document import replace_results
from grokscope.images import MNIST, read_images
from grokscope.labels.auditor import LabelAuditor
from grokscope.measure.audit.detection import auroc, r_precision
from grokscope.outputs import write_text

Numbers = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
DOCUMENT, RESULTS = Path("docs/audit.md"), Path("benchmarks/audit.json")
SEEDS = 5
FRACTIONS = (0.1, 0.2, 0.3, 0.4)
NOISES = ("symmetric", "asymmetric", "per class")
_IMAGES = 1000
DATA = ("digits", "breast cancer", "covertype-like", f"MNIST, {_IMAGES} images")
_KEYS = ("data", "noise", "fraction", "seed", "method")
Row = dict[str, Any]  # the keys, and what was measured


def datasets(data_dir: Path | None) -> Iterator[tuple[str, Numbers, Labels]]:
    """Names, numbers and true labels."""
    digits, cancer = load_digits(), load_breast_cancer()
    yield DATA[0], digits.data, digits.target
    yield DATA[1], cancer.data, cancer.target
    # As covertype has: 54 columns, most of which say little, seven classes of very different sizes.
    shares = [0.36, 0.49, 0.06, 0.01, 0.02, 0.03, 0.03]
    table = make_classification(
        1000, 54, n_informative=12, n_redundant=6, n_classes=7, weights=shares, flip_y=0, class_sep=2, random_state=0
    )
    yield DATA[2], table[0], table[1]
    if data_dir is not None:
        files = read_images(data_dir, MNIST)
        chosen = np.random.default_rng(0).choice(len(files.train_labels), _IMAGES, replace=False)
        pixels = files.train_images[chosen].reshape(_IMAGES, -1) / 255
        yield DATA[3], pixels, files.train_labels[chosen].astype(np.int64)


def noisy(truth: Labels, noise: str, fraction: float, seed: int) -> Labels:
    """Labels of which this fraction is wrong: any other one, or the next one.

    Per class it is any other one too, and each class has its own rate, from half of the fraction to one and a half,
    dealt out by the seed. A class whose labels are mostly those of another is lost to everyone, so the rates stay
    below that.

    >>> truth = np.repeat(np.arange(4), 100)
    >>> labels = noisy(truth, "per class", 0.2, seed=0)
    >>> sorted(int((labels != truth)[truth == label].sum()) for label in range(4))
    [10, 17, 23, 30]
    """
    rng = np.random.default_rng(seed)
    classes = int(truth.max()) + 1
    rates = [fraction] * classes
    if noise == "per class":
        rates = np.minimum(rng.permutation(np.linspace(0.5, 1.5, classes)) * fraction, 0.9 * (1 - 1 / classes)).tolist()
    labels = truth.copy()
    for label, rate in enumerate(rates):
        own = np.flatnonzero(truth == label)
        chosen = rng.choice(own, round(rate * len(own)), replace=False)
        shift = 1 if noise == "asymmetric" else rng.integers(1, classes, size=len(chosen))
        labels[chosen] = (label + shift) % classes
    return labels


def by_grokscope(X: Numbers, y: Labels, seed: int) -> Numbers:
    """The scores of LabelAuditor."""
    return np.asarray(LabelAuditor(random_state=seed).fit(X, y).scores_)


def by_cleanlab(classifier: Callable[[int], Any]) -> Callable[[Numbers, Labels, int], Numbers]:
    """1 minus the quality that cleanlab gives each label."""

    def scores(X: Numbers, y: Labels, seed: int) -> Numbers:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of classes that are too small for five folds, and of many iterations
            said = cross_val_predict(classifier(seed), X, y, cv=5, method="predict_proba")
        return 1 - np.asarray(get_label_quality_scores(y, said, method="self_confidence"))

    return scores


METHODS: dict[str, Callable[[Numbers, Labels, int], Numbers]] = {
    "grokscope": by_grokscope,
    "cleanlab, logistic": by_cleanlab(lambda seed: make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))),
    "cleanlab, forest": by_cleanlab(lambda seed: RandomForestClassifier(100, random_state=seed)),
}


def measured(X: Numbers, truth: Labels, cell: Row) -> Row:
    """The cell with AUROC, precision at the true count, and seconds of CPU."""
    labels = noisy(truth, cell["noise"], cell["fraction"], cell["seed"])
    with threadpool_limits(1):
        started = time.process_time()
        scores = METHODS[cell["method"]](X, labels, cell["seed"])
        seconds = time.process_time() - started
    wrong = labels != truth
    found = {"auroc": auroc(scores, wrong), "precision": r_precision(scores, wrong), "seconds": seconds}
    return cell | {name: round(value, 4) for name, value in found.items() if value is not None}


def wanted(data: list[tuple[str, Numbers, Labels]], seeds: int) -> Iterator[tuple[Numbers, Labels, Row]]:
    """Every cell, a whole seed before the next one."""
    for seed, fraction, (name, X, truth), noise, method in product(range(seeds), FRACTIONS, data, NOISES, METHODS):
        if noise == "asymmetric" and truth.max() == 1:
            continue  # of two labels the next one is any other one
        yield X, truth, dict(zip(_KEYS, (name, noise, fraction, seed, method), strict=True))


def markdown(rows: list[Row]) -> str:
    """Tables of means over the seeds that all methods have, and who is the best how often."""
    seeds = _grouped(rows, "data", "noise", "fraction", "seed").values()
    rows = [row for own in seeds if len(own) == len(METHODS) for row in own]
    parts = [_table(rows, "auroc", "AUROC"), _table(rows, "precision", "Precision at the true number of wrong labels")]
    return "\n\n".join([*parts, _seconds(rows), _summary(rows)])


def _table(rows: list[Row], measure: str, title: str) -> str:
    lines = [
        f"{title}, {' / '.join(METHODS)}:",
        "",
        "| data | noise | " + " | ".join(f"{fraction:.0%} wrong" for fraction in FRACTIONS) + " | seeds |",
        "|---|---|" + "---|" * (len(FRACTIONS) + 1),
    ]
    for (data, noise), own in _grouped(rows, "data", "noise").items():
        found = [_grouped([row for row in own if row["fraction"] == fraction], "method") for fraction in FRACTIONS]
        cells = [_cell([_mean(of, (name,), measure) for name in METHODS]) for of in found]
        counts = {len(of.get((name,), [])) for of in found for name in METHODS}
        lines.append(f"| {data} | {noise} | " + " | ".join(cells) + f" | {_span(counts)} |")
    return "\n".join(lines)


def _seconds(rows: list[Row]) -> str:
    lines = ["| seconds of one core | " + " | ".join(METHODS) + " |", "|---|" + "---|" * len(METHODS)]
    for (data,), own in _grouped(rows, "data").items():
        of = _grouped(own, "method")
        lines.append(f"| {data} | " + " | ".join(f"{_mean(of, (name,), 'seconds'):.1f}" for name in METHODS) + " |")
    return "\n".join(lines)


def _summary(rows: list[Row]) -> str:
    """Whose mean AUROC is the highest in how many cells, and by how much seeds differ."""
    best: list[str] = []
    deviations: list[float] = []
    for own in _grouped(rows, "data", "noise", "fraction").values():
        of = _grouped(own, "method")
        best.append(max(METHODS, key=lambda name: _mean(of, (name,), "auroc")))
        deviations += [float(np.std([row["auroc"] for row in found], ddof=1)) for found in of.values() if found[1:]]
    words = ", ".join(f"{name} in {best.count(name)}" for name in METHODS)
    text = f"Of {len(best)} mean AUROCs the highest is that of {words}."
    if deviations:
        text += f"\nFrom seed to seed they differ by {np.median(deviations):.3f} (the median standard deviation)."
    return text


def _grouped(rows: list[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def _mean(groups: dict[tuple[Any, ...], list[Row]], key: tuple[Any, ...], measure: str) -> float:
    return float(np.mean([row[measure] for row in groups[key]])) if key in groups else float("nan")


def _cell(values: list[float]) -> str:
    """The best is bold; what is not measured yet is a dash."""
    texts = ["–" if np.isnan(value) else f"{value:.3f}" for value in values]
    best = "" if "–" in texts else max(texts)
    return " / ".join(f"**{text}**" if text == best else text for text in texts)


def _span(counts: set[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low}–{high}"


def _place(row: Row) -> tuple[int, ...]:
    """Where a row stands in the file, whichever came first."""
    order = DATA.index(row["data"]), NOISES.index(row["noise"]), list(METHODS).index(row["method"])
    return row["seed"], round(100 * row["fraction"]), *order


def main() -> None:
    """Measure what is missing, and put the tables into the docs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, help="where MNIST is; without it the other data are measured")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many; 0 measures nothing")
    parser.add_argument("--workers", type=int, default=1, help="processes side by side")
    arguments = parser.parse_args()
    rows: list[Row] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    done = {tuple(row[key] for key in _KEYS) for row in rows}
    cells = [
        cell
        for cell in wanted(list(datasets(arguments.data_dir)), arguments.seeds)
        if tuple(cell[-1].values()) not in done
    ]
    with ProcessPoolExecutor(arguments.workers, get_context("spawn")) as pool:
        waiting = [pool.submit(measured, *cell) for cell in cells]
        try:
            for cell in track(as_completed(waiting), description="Cells", total=len(waiting)):
                rows.append(cell.result())
                write_text(RESULTS, json.dumps(sorted(rows, key=_place), indent=0) + "\n")
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    replace_results(DOCUMENT, markdown(rows))


if __name__ == "__main__":
    main()
