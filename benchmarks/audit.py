"""`python -m benchmarks.audit [DATA_DIR]`: finding wrong labels, beside cleanlab.

Every dataset gets wrong labels of every kind and amount, with five seeds. Grokscope is LabelAuditor as it comes;
cleanlab ranks by its self-confidence, from the cross-validated probabilities of a logistic regression, as in its
tutorials, and of a random forest. MNIST is used where DATA_DIR has it. Results are kept in benchmarks/audit.json as
they come, so that the same command goes on; the table for the docs is printed at the end.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from cleanlab.rank import get_label_quality_scores
from rich.console import Console
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from grokscope.images import MNIST, read_images
from grokscope.labels.auditor import LabelAuditor
from grokscope.measure.audit.detection import auroc, r_precision
from grokscope.outputs import write_text

Numbers = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
RESULTS = Path("benchmarks/audit.json")
SEEDS = range(5)
FRACTIONS = (0.2, 0.4, 0.1)
NOISES = ("symmetric", "asymmetric", "per class")
_IMAGES = 1000


def datasets(data_dir: Path | None) -> Iterator[tuple[str, Numbers, Labels]]:
    """Names, numbers and true labels."""
    digits, cancer = load_digits(), load_breast_cancer()
    yield "digits", digits.data, digits.target
    yield "breast cancer", cancer.data, cancer.target
    # As covertype has: 54 columns, most of which say little, seven classes of very different sizes.
    shares = [0.36, 0.49, 0.06, 0.01, 0.02, 0.03, 0.03]
    table = make_classification(
        1000, 54, n_informative=12, n_redundant=6, n_classes=7, weights=shares, flip_y=0, class_sep=2, random_state=0
    )
    yield "covertype-like", table[0], table[1]
    if data_dir is not None:
        files = read_images(data_dir, MNIST)
        chosen = np.random.default_rng(0).choice(len(files.train_labels), _IMAGES, replace=False)
        pixels = files.train_images[chosen].reshape(_IMAGES, -1) / 255
        yield f"MNIST, {_IMAGES} images", pixels, files.train_labels[chosen].astype(np.int64)


def noisy(truth: Labels, noise: str, fraction: float, seed: int) -> Labels:
    """Labels of which this fraction is wrong, or nearly: any other, the next, or any other in half of the classes."""
    rng = np.random.default_rng(seed)
    classes = int(truth.max()) + 1
    may_be = np.flatnonzero(truth < -(-classes // 2)) if noise == "per class" else np.arange(len(truth))
    count = min(round(fraction * len(truth)), len(may_be) // 2)
    chosen = rng.choice(may_be, count, replace=False)
    labels = truth.copy()
    shift = 1 if noise == "asymmetric" else rng.integers(1, classes, size=count)
    labels[chosen] = (truth[chosen] + shift) % classes
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


def measured(X: Numbers, truth: Labels, noise: str, fraction: float, seed: int, method: str) -> dict[str, Any]:
    """AUROC, precision at the true count, and seconds of CPU."""
    labels = noisy(truth, noise, fraction, seed)
    started = time.process_time()
    scores = METHODS[method](X, labels, seed)
    seconds = time.process_time() - started
    wrong = labels != truth
    return {"auroc": auroc(scores, wrong), "precision": r_precision(scores, wrong), "seconds": seconds}


def markdown(rows: list[dict[str, Any]]) -> str:
    """A row for each dataset and kind of noise: means over fractions and seeds; the best AUROC is bold."""
    lines = [
        "| data | noise | " + " | ".join(METHODS) + " |",
        "|---|---|" + "---|" * len(METHODS),
    ]
    for data in dict.fromkeys(row["data"] for row in rows):
        for noise in NOISES:
            cells = []
            own = {
                name: [row for row in rows if (row["data"], row["noise"], row["method"]) == (data, noise, name)]
                for name in METHODS
            }
            if not all(own.values()):
                continue
            means = {
                name: {key: np.mean([row[key] for row in found]) for key in ("auroc", "precision", "seconds")}
                for name, found in own.items()
            }
            best = max(mean["auroc"] for mean in means.values())
            for mean in means.values():
                mark = "**" if mean["auroc"] == best else ""
                cells.append(f"{mark}{mean['auroc']:.3f}{mark}, {mean['precision']:.2f}, {mean['seconds']:.1f} s")
            lines.append(f"| {data} | {noise} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure what is missing, seed after seed."""
    data_dir = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    rows: list[dict[str, Any]] = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    keys = ("data", "noise", "fraction", "seed", "method")
    done = {tuple(row[key] for key in keys) for row in rows}
    chosen = list(datasets(data_dir))
    for fraction, seed, (name, X, truth), noise, method in product(FRACTIONS, SEEDS, chosen, NOISES, METHODS):
        values = (name, noise, fraction, seed, method)
        if values in done:
            continue
        found = measured(X, truth, noise, fraction, seed, method)
        rounded = {key: round(float(value), 4) for key, value in found.items()}
        rows.append(dict(zip(keys, values, strict=True)) | rounded)
        write_text(RESULTS, json.dumps(rows, indent=0) + "\n")
    Console(soft_wrap=True).print(markdown(rows), highlight=False)


if __name__ == "__main__":
    main()
