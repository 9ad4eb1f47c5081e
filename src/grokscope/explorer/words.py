"""Fields and specs in few words."""

from grokscope.spec import RunSpec


def settings_of(spec: RunSpec) -> str:
    """The settings that readers look for, in a line.

    >>> settings_of(RunSpec())
    'add mod 97, α 0.5, ξ 0.35, quadratic 500, adamw 0.01, 2000 steps, seed 0'
    """
    task, optimizer, training = spec.task, spec.optimizer, spec.training
    parts = [
        task.describe(),
        f"α {task.data_fraction:g}",
        f"ξ {task.corruption:g}",
        ", ".join([spec.model.describe(), *spec.model.details()]),
        f"{optimizer.describe()} {optimizer.learning_rate:g}",
        *([f"weight decay {optimizer.weight_decay:g}"] if optimizer.weight_decay else []),
        *([f"batch {training.batch_size}"] if training.batch_size else []),
        f"{training.steps} steps",
        f"seed {training.seed}",
    ]
    return ", ".join(parts)


_TITLES = {"task.data_fraction": "data fraction α", "task.corruption": "corruption ξ"}


def axis_title(path: str) -> str:
    """What an axis is called.

    >>> axis_title("task.corruption"), axis_title("optimizer.weight_decay")
    ('corruption ξ', 'weight decay')
    """
    return _TITLES.get(path, short_name(path))


def short_name(path: str) -> str:
    """A field without its section.

    >>> short_name("optimizer.weight_decay")
    'weight decay'
    """
    return path.rpartition(".")[2].replace("_", " ")


def text_of(value: object) -> str:
    """A value of a field.

    >>> text_of(0.30), text_of("relu")
    ('0.3', 'relu')
    """
    return f"{value:g}" if isinstance(value, float) else str(value)
