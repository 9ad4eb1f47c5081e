"""`grokscope train`: one run."""

import json
from pathlib import Path
from typing import Annotated

import typer

from grokscope.cli.options import DEFAULT_STORE, EngineOption, StoreOption, note
from grokscope.cli.progress import RunProgress
from grokscope.engines import check_engine
from grokscope.errors import SpecError
from grokscope.result import RunResult
from grokscope.run import execute
from grokscope.spec import RunSpec
from grokscope.store import Store

_TASK, _MODEL, _OPTIMIZER, _TRAINING = "Task", "Model", "Optimiser", "Training"
_RUNNING = "Running"


def _flag(text: str, panel: str, default: str = "") -> typer.models.OptionInfo:
    """An option that overrides a field of the spec only if it is given; `default` is what the field has otherwise."""
    option: typer.models.OptionInfo = typer.Option(help=text, rich_help_panel=panel, show_default=default or False)
    return option


def train(
    operation: Annotated[str | None, _flag("add, subtract, multiply, divide, x2+y2 or x2+xy+y2.", _TASK, "add")] = None,
    modulus: Annotated[int | None, _flag("Modulus p ≥ 2; a prime for division.", _TASK, "97")] = None,
    data_fraction: Annotated[float | None, _flag("Fraction α of all pairs to train on.", _TASK, ".5")] = None,
    corruption: Annotated[float | None, _flag("Fraction ξ of the training labels to corrupt.", _TASK, ".35")] = None,
    corruption_kind: Annotated[
        str | None,
        _flag(
            "symmetric (over all labels), symmetric-wrong (never the true one) or asymmetric (label + 1).",
            _TASK,
            "symmetric",
        ),
    ] = None,
    corrupted_operands: Annotated[
        str | None, _flag("Corrupt only examples with m among these, as in 0,1,2.", _TASK)
    ] = None,
    width: Annotated[int | None, _flag("Hidden neurons N.", _MODEL, "500")] = None,
    activation: Annotated[str | None, _flag("quadratic, relu or gelu.", _MODEL, "quadratic")] = None,
    dropout: Annotated[float | None, _flag("Probability to drop a neuron's pre-activation.", _MODEL, "0")] = None,
    norm: Annotated[str | None, _flag("none, batch or layer; after the activation.", _MODEL, "none")] = None,
    parameterization: Annotated[
        str | None, _flag("Initial scale: paper, (16N)^(-2/3), or standard, 2/fan_in.", _MODEL, "paper")
    ] = None,
    optimizer: Annotated[str | None, _flag("adamw, adam or sgd.", _OPTIMIZER, "adamw")] = None,
    lr: Annotated[float | None, _flag("Learning rate.", _OPTIMIZER, ".01")] = None,
    weight_decay: Annotated[float | None, _flag("Weight decay.", _OPTIMIZER, "0")] = None,
    momentum: Annotated[float | None, _flag("Momentum of sgd.", _OPTIMIZER, "0")] = None,
    loss: Annotated[str | None, _flag("mse or cross-entropy.", _TRAINING, "mse")] = None,
    steps: Annotated[int | None, _flag("Optimisation steps.", _TRAINING, "2000")] = None,
    batch_size: Annotated[int | None, _flag("Mini-batch size.", _TRAINING, "full batch")] = None,
    scale_with_batch: Annotated[
        bool,
        typer.Option(
            "--scale-with-batch",
            help="The paper's scaling: steps · 256/B and learning rate · √(B/256) for batch size B.",
            rich_help_panel=_TRAINING,
        ),
    ] = False,
    seed: Annotated[int | None, _flag("Seed of all randomness.", _TRAINING, "0")] = None,
    seeding: Annotated[
        str | None,
        _flag(
            "independent, or reference: the authors' split, labels and initial weights.",
            _TRAINING,
            "independent",
        ),
    ] = None,
    measure_every: Annotated[int | None, _flag("Measure at steps 1-10, then every so many.", _TRAINING, "50")] = None,
    spec: Annotated[
        Path | None,
        typer.Option(
            help="Start from a spec in TOML or JSON; other flags override it.",
            rich_help_panel=_RUNNING,
            show_default=False,
        ),
    ] = None,
    engine: EngineOption = "auto",
    device: Annotated[str, typer.Option(help="cpu, cuda or mps.", rich_help_panel=_RUNNING)] = "cpu",
    store: StoreOption = DEFAULT_STORE,
    save_weights: Annotated[
        bool, typer.Option("--save-weights", help="Store the final network too.", rich_help_panel=_RUNNING)
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Train even if the store has this run.", rich_help_panel=_RUNNING)
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as one JSON object.", rich_help_panel=_RUNNING)
    ] = False,
) -> None:
    """Train one network, store the run and name its phase.

    [bold]Examples[/bold]

    grokscope train --weight-decay 5

    grokscope train --data-fraction .65 --corruption .2 --norm batch --batch-size 64 --lr .005

    grokscope train --spec my.toml --seed 1 --save-weights --json
    """
    chosen = {
        "task.operation": operation,
        "task.modulus": modulus,
        "task.data_fraction": data_fraction,
        "task.corruption": corruption,
        "task.corruption_kind": corruption_kind,
        "task.corrupted_operands": _numbers(corrupted_operands),
        "model.width": width,
        "model.activation": activation,
        "model.dropout": dropout,
        "model.norm": norm,
        "model.parameterization": parameterization,
        "optimizer.kind": optimizer,
        "optimizer.learning_rate": lr,
        "optimizer.weight_decay": weight_decay,
        "optimizer.momentum": momentum,
        "training.loss": loss,
        "training.steps": steps,
        "training.batch_size": batch_size,
        "training.seed": seed,
        "training.seeding": seeding,
        "training.measure_every": measure_every,
    }
    base = RunSpec.from_file(spec) if spec else RunSpec()
    run_spec = base.updated({path: value for path, value in chosen.items() if value is not None})
    if scale_with_batch:
        if run_spec.training.batch_size is None:
            raise SpecError("--scale-with-batch needs a --batch-size")
        run_spec = run_spec.with_batches_of(run_spec.training.batch_size)

    check_engine(engine, device)
    opened = Store(store)
    result = None if force else _stored_result(opened, run_spec, engine, save_weights)
    if result is None:
        with RunProgress(run_spec) as progress:
            result = execute(run_spec, engine=engine, device=device, on_measurement=progress.update)
        opened.save(result, weights=save_weights)
    else:
        note(f"Run {run_spec.run_id} is in the store already; --force trains it again.")
    if as_json:
        typer.echo(json.dumps(result.to_dict(), allow_nan=False))
    else:
        typer.echo(result.describe())
        typer.echo(f"Run {result.run_id} ({result.engine}, {result.seconds:.1f} s) is in {store}.")
        typer.echo(f"Look at it with: grokscope show {result.run_id}{_store_flag(store)}")


def _stored_result(store: Store, spec: RunSpec, engine: str, save_weights: bool) -> RunResult | None:
    """The stored run, if it is all that was asked for."""
    run = store.find(spec.run_id)
    if run is None or engine not in ("auto", run.engine) or (save_weights and not run.has_weights):
        return None
    return store.load(run.run_id)


def _numbers(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise SpecError(f"--corrupted-operands = {text!r} is not allowed: must be whole numbers, as in 0,1,2") from None


def _store_flag(store: Path) -> str:
    return "" if store == DEFAULT_STORE else f" --store {store}"
