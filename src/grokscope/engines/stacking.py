"""Which runs can advance together, those whose arrays have the same shapes and whose steps do the same things, and how
many of them.
"""

from grokscope.models import MLP_EXPANSION, parameter_count
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
    excluded: dict[str, set[str]] = {}
    for path in FREE_FIELDS:
        section, _, field = path.partition(".")
        excluded.setdefault(section, set()).add(field)
    return spec.model_dump_json(exclude=excluded)


def bytes_per_run(spec: RunSpec) -> int:
    """Roughly what a run of a stack takes on the device while a step is under way.

    >>> 100 < bytes_per_run(RunSpec()) / 1e6 < 200
    True
    """
    model, p = spec.model, spec.task.modulus
    rows = spec.training.batch_size or p * p
    if model.kind == "mlp":
        kept = model.width * (model.depth - 1) * (5 + 3 * (model.norm != "none"))
        dropped = model.width
    else:
        # The stream, q, k, v, the mixed values and the two layers of the MLP, at both positions but for the last layer.
        kept = model.embed * (2 * model.layers - 1) * (14 + 2 * MLP_EXPANSION + 4 * (model.norm != "none"))
        dropped = 2 * model.embed
    # Random words are made as 64-bit numbers, several for each 16 bits.
    dropped *= 6 if model.dropout else 0
    logits = 6 * p
    weights = 6 * parameter_count(model, p)  # they, their gradient, two moments, and what the update makes of them
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
