"""Which runs can advance together, those whose arrays have the same shapes and whose steps do the same things, and how
many of them.
"""

import json

from grokscope.extension import is_reference
from grokscope.spec import RunSpec

_SHARE_OF_MEMORY = 0.7  # of what is free: the rest is for what the estimate leaves out

# Where the runs of a stack may differ.
FREE_FIELDS = (
    "task.data_fraction",
    "task.corruption",
    "task.corruption_kind",
    "task.corrupted_operands",
    "model.dropout",
    "optimizer.learning_rate",
    "optimizer.weight_decay",
    "optimizer.beta1",
    "optimizer.beta2",
    "optimizer.epsilon",
    "optimizer.momentum",
    "training.seed",
    "training.seeding",
)


def stack_key(spec: RunSpec) -> str:
    """Runs with the same key can be stacked.

    >>> spec = RunSpec()
    >>> stack_key(spec) == stack_key(spec.updated({"task.corruption": 0.1, "training.seed": 3}))
    True
    >>> stack_key(spec) == stack_key(spec.updated({"model.width": 100}))
    False
    """
    fields = spec.model_dump(mode="json")
    for path in FREE_FIELDS:
        section, _, field = path.partition(".")
        if section == "model" and is_reference(spec.model.kind):
            continue  # one network computes for all runs, and a user's may use any of its fields
        fields[section].pop(field, None)
    return json.dumps(fields)


def bytes_per_run(spec: RunSpec) -> int:
    """Roughly what a run of a stack takes on the device while a step is under way.

    >>> 100 < bytes_per_run(RunSpec()) / 1e6 < 200
    True
    """
    model, task = spec.model, spec.task
    rows = spec.training.batch_size or task.example_count
    kept = model.activation_count(task)
    # Random words are made as 64-bit numbers, several for each 16 bits.
    dropped = 6 * model.activation_count(task) // 5 if model.dropout_probability else 0
    logits = 6 * task.classes
    weights = 6 * model.parameter_count(task)  # they, their gradient, two moments, and what the update makes of them
    return 4 * (rows * (kept + dropped + logits) + weights)


def runs_that_fit(spec: RunSpec, device: str) -> int:
    """How many runs like this one the memory of the device has room for, at least one."""
    from grokscope.engines.stacked_engine import free_bytes

    return max(1, int(_SHARE_OF_MEMORY * free_bytes(device)) // bytes_per_run(spec))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that there was not enough memory; every backend says it in its own way."""
    return isinstance(error, MemoryError) or any(
        words in str(error).lower() for words in ("out of memory", "can't allocate memory", "not enough memory")
    )
