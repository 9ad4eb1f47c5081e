"""Tasks: what there is to learn, and what of it is shown with which labels."""

from grokscope.tasks.corruption import CORRUPTIONS, Corruption
from grokscope.tasks.dataset import Dataset, Examples, Inputs
from grokscope.tasks.groups import GroupTask
from grokscope.tasks.images import ImageTask
from grokscope.tasks.modular import ModularTask, Operation, is_prime, modular_waves
from grokscope.tasks.parity import ParityTask
from grokscope.tasks.polynomial import PolynomialTask
from grokscope.tasks.task import InputShape, Seeding, Task, UnresolvedTask, waves_of

Task.built_in = (ModularTask, GroupTask, PolynomialTask, ParityTask, ImageTask)

__all__ = [
    "CORRUPTIONS",
    "Corruption",
    "Dataset",
    "Examples",
    "GroupTask",
    "ImageTask",
    "InputShape",
    "Inputs",
    "ModularTask",
    "Operation",
    "ParityTask",
    "PolynomialTask",
    "Seeding",
    "Task",
    "UnresolvedTask",
    "is_prime",
    "make_dataset",
    "modular_waves",
    "waves_of",
]


def make_dataset(task: Task, seed: int = 0, seeding: Seeding = "independent") -> Dataset:
    """The dataset of a task.

    >>> make_dataset(ModularTask(modulus=5)).train_inputs.shape
    (12, 2)
    """
    return task.dataset(seed, seeding)
