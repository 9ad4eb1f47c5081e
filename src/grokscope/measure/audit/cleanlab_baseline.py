"""The label-quality scores of cleanlab, for comparison."""

import numpy as np

from grokscope.arrays import FloatArray, Int64Array
from grokscope.errors import GrokscopeError

METHODS = ("self_confidence", "normalized_margin")


def check_cleanlab() -> None:
    """Refuse to go on without cleanlab."""
    try:
        import cleanlab.rank  # noqa: F401
    except ImportError:
        raise GrokscopeError(
            "the baseline needs cleanlab, which is not installed: pip install 'grokscope[audit]'"
        ) from None


def cleanlab_scores(probabilities: FloatArray, labels: Int64Array) -> dict[str, FloatArray]:
    """1 minus cleanlab's quality of every label, from the network's own probabilities [n, p]."""
    check_cleanlab()
    from cleanlab.rank import get_label_quality_scores

    return {
        f"cleanlab_{method}": 1 - np.asarray(get_label_quality_scores(labels, probabilities, method=method))
        for method in METHODS
    }
