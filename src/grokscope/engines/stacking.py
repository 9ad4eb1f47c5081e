"""Which runs can advance together: those whose arrays have the same shapes and whose steps do the same things."""

from grokscope.spec import RunSpec

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
    excluded: dict[str, set[str]] = {}
    for path in FREE_FIELDS:
        section, _, field = path.partition(".")
        excluded.setdefault(section, set()).add(field)
    return spec.model_dump_json(exclude=excluded)
