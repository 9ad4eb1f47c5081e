"""The flags of `grokscope train` that set a field of a spec: one line each, and what they take is read off the spec.

@takes_fields
def train(fields, store=..., force=False):
    spec = RunSpec().updated_from_text(fields)
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any

import typer

from grokscope.spec import field_of

YOURS = "your own as file.py:Class"
_SHORT = {"whole number": "integer", "finite number": "number", "list of whole numbers": "integers"}  # 80 columns


@dataclass(frozen=True)
class Flag:
    """A field, what to say about it, its flag if that is not the field's own name, and other names for the flag."""

    path: str
    text: str
    name: str = ""
    also: str = ""

    @property
    def parameter(self) -> str:
        """The flag without its dashes: `--data-fraction` is data_fraction."""
        return self.name or self.path.partition(".")[2]

    def as_parameter(self) -> inspect.Parameter:
        """The flag as typer wants it. It is a text: the spec says what is wrong with it better than typer does."""
        kind, choices, default = field_of(self.path)
        name = self.parameter.replace("_", "-")
        on_or_off = kind == "true or false"
        option: Any = typer.Option(
            *([f"--{name}/--no-{name}"] if on_or_off else [f"--{each}" for each in (name, *self.also.split())]),
            help=self._help(choices, default),
            metavar=None if on_or_off else _SHORT.get(kind, kind).upper(),
            rich_help_panel=self.path.partition(".")[0].title(),
            show_default=False,
        )
        annotation = Annotated[bool | None, option] if on_or_off else Annotated[str | None, option]
        return inspect.Parameter(self.parameter, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)

    def _help(self, choices: tuple[str, ...], default: object) -> str:
        text = self.text + (f": {', '.join(choices)}" if choices else "")
        if self.path.endswith(".kind"):
            text += f"; or {YOURS}"
        match default:
            case None | ():
                return f"{text}."
            case bool():
                return f"{text}. \\[{'yes' if default else 'no'}]"
            case float():
                return f"{text}. \\[{default:g}]"
        return f"{text}. \\[{default}]"


FLAGS = (
    Flag("task.kind", "Kind of task", "task"),
    Flag("task.operation", "What to compute"),
    Flag("task.modulus", "Modulus p; a prime for division", also="p"),
    Flag("task.group", "Group of the task 'group': S2 … S5, D3, D4, …, C2, C3, …"),
    Flag("task.polynomial", "Of x and y, for the task 'polynomial'"),
    Flag("task.bit_count", "Bits of the task 'parity'"),
    Flag("task.relevant_bits", "How many of them count"),
    Flag("task.data", "Images of the task 'images', by their name: MNIST unless others are named"),
    Flag("task.data_fraction", "Fraction α of all examples to train on", also="alpha"),
    Flag("task.corruption", "Fraction ξ of the training labels to corrupt", also="xi"),
    Flag(
        "task.corruption_kind",
        "symmetric (over all labels), symmetric-wrong (over all but the true one), asymmetric (the next label), or "
        + YOURS,
    ),
    Flag("task.corrupted_operands", "Corrupt only examples with m among these, as in 0,1,2"),
    Flag("model.kind", "Kind of network", "model"),
    Flag("model.width", "Hidden neurons N of an MLP, in each layer"),
    Flag("model.depth", "Layers of weights of an MLP"),
    Flag("model.activation", "Activation φ; if left out, relu for deeper networks and Transformers"),
    Flag("model.dropout", "Probability to drop a pre-activation, or what a block of a Transformer adds"),
    Flag("model.norm", "Normalisation after every activation, or before every block of a Transformer"),
    Flag("model.parameterization", "Initial variance of an MLP, (16N)^(-2/3), 2/fan_in or 2/N^(2/3)"),
    Flag("model.embed", "Embedding dimensions d of a Transformer"),
    Flag("model.heads", "Attention heads, a divisor of d"),
    Flag("model.layers", "Layers of a Transformer"),
    Flag("model.tie_weights", "Unembed with the embedding's weights"),
    Flag("model.scaling", "What a Transformer divides attention scores and logits by"),
    Flag("model.module_rates", "A learning rate for each module of a Transformer, as the authors' program offers"),
    Flag("model.tied_start", "As what a tied matrix starts: N(0, 1) or N(0, 1/d)"),
    Flag("model.dropout_places", "Where a Transformer drops: what blocks add, or embeddings and attention too"),
    Flag("optimizer.kind", "Optimiser", "optimizer"),
    Flag("optimizer.learning_rate", "Learning rate", "lr", also="learning-rate"),
    Flag("optimizer.weight_decay", "Weight decay", also="wd"),
    Flag("optimizer.beta1", "Adam's β₁"),
    Flag("optimizer.beta2", "Adam's β₂"),
    Flag("optimizer.epsilon", "Adam's ε"),
    Flag("optimizer.momentum", "Momentum of sgd"),
    Flag("optimizer.decay_embeddings", "Weight decay on a Transformer's embeddings too"),
    Flag("regularizer.kind", "Regulariser", "regularizer"),
    Flag("training.loss", "Loss"),
    Flag("training.steps", "Optimisation steps"),
    Flag("training.settle", "Stop once the phase has been the same, and clear, for so many steps; 0 is never"),
    Flag("training.batch_size", "Mini-batch size; the full batch if left out"),
    Flag("training.seed", "Seed of all randomness"),
    Flag("training.seeding", "From the seed, or the authors' split, labels and initial weights"),
    Flag("training.measure_every", "Measure at steps 1-10, then every so many"),
    Flag("training.measure_per_decade", "Measure also at so many steps of each decade, evenly spaced on a log axis"),
    Flag(
        "training.measurements", "Measure something of your own too, as file.py:Class; several with commas", "measure"
    ),
)


def takes_fields(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose first argument is the fields that flags have set, as texts by path; all others are its own."""
    _, *own = inspect.signature(command).parameters.values()
    flags = [flag.as_parameter() for flag in FLAGS]

    @wraps(command)
    def with_flags(**arguments: Any) -> None:
        command(_fields(arguments), **{parameter.name: arguments[parameter.name] for parameter in own})

    with_flags.__signature__ = inspect.Signature([*flags, *own])  # type: ignore[attr-defined]
    with_flags.__annotations__ = {parameter.name: parameter.annotation for parameter in (*flags, *own)}
    return with_flags


def _fields(arguments: Mapping[str, Any]) -> dict[str, str]:
    given = {flag.path: arguments[flag.parameter] for flag in FLAGS}
    return {path: str(value) for path, value in given.items() if value is not None}
