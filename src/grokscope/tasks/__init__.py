"""TaskSpec → Dataset: pairs, noisy and true labels, the corruption mask, and the split."""

from grokscope.tasks.modular import Dataset, make_dataset

__all__ = ["Dataset", "make_dataset"]
