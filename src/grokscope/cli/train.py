"""`grokscope train`: one run."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from grokscope.cli.options import DEFAULT_STORE, DeviceOption, EngineOption, StoreOption, note, store_flag
from grokscope.cli.values import assignments
from grokscope.engines import resolve_engine
from grokscope.errors import SpecError
from grokscope.spec import RunSpec, field_of
from grokscope.store import Store
from grokscope.sweeps import Finished, Measured, Running, Waiting, run_with
from grokscope.sweeps.bars import RunsProgress
from grokscope.sweeps.stopping import stop_on_request

_RUNNING = "Running"


def _flag(path: str, text: str, *names: str) -> typer.models.OptionInfo:
    """An option that overrides the field at `path` if it is given; what it takes is read off the spec."""
    kind, choices, default = field_of(path)
    shown = f"{default:g}" if isinstance(default, float) else default
    if kind == "true or false":
        shown = "yes" if default else "no"
    option: typer.models.OptionInfo = typer.Option(
        *names,
        help=text + (f": {', '.join(choices)}." if choices else ".") + (f" \\[{shown}]" if shown is not None else ""),
        metavar=None if kind == "true or false" else kind.upper(),
        rich_help_panel=path.partition(".")[0].title(),
        show_default=False,
    )
    return option


def train(
    task: Annotated[str | None, _flag("task.kind", "Kind of task; your own as file.py:Class", "--task")] = None,
    operation: Annotated[str | None, _flag("task.operation", "What to compute")] = None,
    modulus: Annotated[str | None, _flag("task.modulus", "Modulus p; a prime for division")] = None,
    data_fraction: Annotated[str | None, _flag("task.data_fraction", "Fraction α of all pairs to train on")] = None,
    corruption: Annotated[str | None, _flag("task.corruption", "Fraction ξ of the training labels to corrupt")] = None,
    corruption_kind: Annotated[
        str | None,
        _flag(
            "task.corruption_kind",
            "symmetric (over all labels), symmetric-wrong (over all but the true one), asymmetric (the next label), or "
            "your own as file.py:Class",
        ),
    ] = None,
    corrupted_operands: Annotated[
        str | None, _flag("task.corrupted_operands", "Corrupt only examples with m among these, as in 0,1,2")
    ] = None,
    model: Annotated[str | None, _flag("model.kind", "Kind of network; your own as file.py:Class", "--model")] = None,
    width: Annotated[str | None, _flag("model.width", "Hidden neurons N of an MLP, in each layer")] = None,
    depth: Annotated[str | None, _flag("model.depth", "Layers of weights of an MLP")] = None,
    activation: Annotated[
        str | None, _flag("model.activation", "Activation φ; if left out, relu for deeper networks and Transformers")
    ] = None,
    dropout: Annotated[
        str | None,
        _flag("model.dropout", "Probability to drop a pre-activation, or what a block of a Transformer adds"),
    ] = None,
    norm: Annotated[
        str | None, _flag("model.norm", "Normalisation after every activation, or before every block of a Transformer")
    ] = None,
    parameterization: Annotated[
        str | None, _flag("model.parameterization", "Initial variance of an MLP, (16N)^(-2/3), 2/fan_in or 2/N^(2/3)")
    ] = None,
    embed: Annotated[str | None, _flag("model.embed", "Embedding dimensions d of a Transformer")] = None,
    heads: Annotated[str | None, _flag("model.heads", "Attention heads, a divisor of d")] = None,
    layers: Annotated[str | None, _flag("model.layers", "Layers of a Transformer")] = None,
    tie_weights: Annotated[
        bool | None,
        _flag("model.tie_weights", "Unembed with the embedding's weights", "--tie-weights/--no-tie-weights"),
    ] = None,
    scaling: Annotated[
        str | None, _flag("model.scaling", "What a Transformer divides attention scores and logits by")
    ] = None,
    optimizer: Annotated[
        str | None, _flag("optimizer.kind", "Optimiser; your own as file.py:Class", "--optimizer")
    ] = None,
    lr: Annotated[str | None, _flag("optimizer.learning_rate", "Learning rate")] = None,
    weight_decay: Annotated[str | None, _flag("optimizer.weight_decay", "Weight decay")] = None,
    beta1: Annotated[str | None, _flag("optimizer.beta1", "Adam's β₁")] = None,
    beta2: Annotated[str | None, _flag("optimizer.beta2", "Adam's β₂")] = None,
    epsilon: Annotated[str | None, _flag("optimizer.epsilon", "Adam's ε")] = None,
    momentum: Annotated[str | None, _flag("optimizer.momentum", "Momentum of sgd")] = None,
    decay_embeddings: Annotated[
        bool | None,
        _flag(
            "optimizer.decay_embeddings",
            "Weight decay on a Transformer's embeddings too",
            "--decay-embeddings/--no-decay-embeddings",
        ),
    ] = None,
    regularizer: Annotated[
        str | None, _flag("regularizer.kind", "Regulariser; your own as file.py:Class", "--regularizer")
    ] = None,
    loss: Annotated[str | None, _flag("training.loss", "Loss")] = None,
    steps: Annotated[str | None, _flag("training.steps", "Optimisation steps")] = None,
    batch_size: Annotated[
        str | None, _flag("training.batch_size", "Mini-batch size; the full batch if left out")
    ] = None,
    scale_with_batch: Annotated[
        bool,
        typer.Option(
            "--scale-with-batch",
            help="The paper's scaling for batch size B: steps · 256/B and learning rate · √(B/256).",
            rich_help_panel="Training",
        ),
    ] = False,
    seed: Annotated[str | None, _flag("training.seed", "Seed of all randomness")] = None,
    seeding: Annotated[
        str | None, _flag("training.seeding", "From the seed, or the authors' split, labels and initial weights")
    ] = None,
    measure_every: Annotated[
        str | None, _flag("training.measure_every", "Measure at steps 1-10, then at every multiple of this")
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            help="Measure something of your own too, as file.py:Class. May be given several times.",
            rich_help_panel="Training",
            show_default=False,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="Any field by its path, also of your own classes: --set task.bits=12. May be given several times.",
            rich_help_panel=_RUNNING,
            show_default=False,
        ),
    ] = None,
    spec: Annotated[
        Path | None,
        typer.Option(
            help="Start from a spec in TOML or JSON; other flags override it.",
            rich_help_panel=_RUNNING,
            show_default=False,
        ),
    ] = None,
    engine: EngineOption = "auto",
    device: DeviceOption = "cpu",
    store: StoreOption = DEFAULT_STORE,
    save_weights: Annotated[
        bool, typer.Option("--save-weights", help="Store the final network too.", rich_help_panel=_RUNNING)
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Train again if the store has this run; it stays until the new one is saved.",
            rich_help_panel=_RUNNING,
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as one JSON object.", rich_help_panel=_RUNNING)
    ] = False,
) -> None:
    """Train one network, store the run and name its phase.

    A run that is in the store is not trained again. Ctrl-C saves where it stands, and the same command goes on.

    [bold]Examples[/bold]

    grokscope train --weight-decay 5

    grokscope train --data-fraction .65 --corruption .2 --norm batch --batch-size 64 --lr .005

    grokscope train --depth 3 --parameterization standard --lr .001 --weight-decay 5 --data-fraction .8 --corruption .2

    grokscope train --model transformer --scaling sqrt-d --lr .001 --weight-decay 2 --data-fraction .8 --corruption .2

    grokscope train --task my_rules.py:Parity --set task.bits=12

    grokscope train --spec my.toml --seed 1 --save-weights --json
    """
    chosen = {
        "task.kind": task,
        "task.operation": operation,
        "task.modulus": modulus,
        "task.data_fraction": data_fraction,
        "task.corruption": corruption,
        "task.corruption_kind": corruption_kind,
        "task.corrupted_operands": corrupted_operands,
        "model.kind": model,
        "model.width": width,
        "model.depth": depth,
        "model.activation": activation,
        "model.dropout": dropout,
        "model.norm": norm,
        "model.parameterization": parameterization,
        "model.embed": embed,
        "model.heads": heads,
        "model.layers": layers,
        "model.tie_weights": None if tie_weights is None else str(tie_weights),
        "model.scaling": scaling,
        "optimizer.kind": optimizer,
        "optimizer.learning_rate": lr,
        "optimizer.weight_decay": weight_decay,
        "optimizer.beta1": beta1,
        "optimizer.beta2": beta2,
        "optimizer.epsilon": epsilon,
        "optimizer.momentum": momentum,
        "optimizer.decay_embeddings": None if decay_embeddings is None else str(decay_embeddings),
        "regularizer.kind": regularizer,
        "training.measurements": ",".join(measure) if measure else None,
        "training.loss": loss,
        "training.steps": steps,
        "training.batch_size": batch_size,
        "training.seed": seed,
        "training.seeding": seeding,
        "training.measure_every": measure_every,
    }
    base = RunSpec.from_file(spec) if spec else RunSpec()
    said = {path: text for path, text in chosen.items() if text is not None}
    more = assignments(settings or ())
    if twice := said.keys() & more.keys():
        raise SpecError(f"--set names {min(twice)}, which has a flag of its own: give it once")
    run_spec = base.updated_from_text(said | more)
    if scale_with_batch:
        if run_spec.training.batch_size is None:
            raise SpecError("--scale-with-batch needs a --batch-size")
        run_spec = run_spec.with_batches_of(run_spec.training.batch_size)

    resolve_engine(engine, device, run_spec)
    opened = Store(store)
    before = opened.find(run_spec.run_id)
    if before and not force and engine in ("auto", before.engine) and (before.has_weights or not save_weights):
        note(f"Run {run_spec.run_id} is in the store already; --force trains it again.")
    else:
        keep_weights = save_weights or (before is not None and before.has_weights)
        running = Running(workers=0, engine=engine, device=device, weights=keep_weights, again=before is not None)
        _train_here(run_spec, store, running)
    result = opened.load(run_spec.run_id)
    if as_json:
        typer.echo(json.dumps(result.to_dict(), allow_nan=False))
    else:
        typer.echo(result.describe())
        typer.echo(f"Run {result.run_id} ({result.engine}, {result.seconds:.1f} s) is in {store}.")
        typer.echo(f"Look at it with: grokscope show {result.run_id}{store_flag(store)}")


def _train_here(spec: RunSpec, store: Path, running: Running) -> None:
    """A sweep of one run in this process. Ends the program if it was asked to stop."""
    finished = False
    with stop_on_request() as should_stop, RunsProgress([spec], [f"training {spec.run_id}"]) as progress:
        for event in run_with(running, [spec], store, should_stop=should_stop):
            match event:
                case Measured(_, row):
                    progress.update(0, row)
                case Waiting(_, owner):
                    note(f"Run {spec.run_id} is being trained by {owner}: waiting for it.")
                case Finished():
                    finished = True
    if not finished:
        note("Stopped. The same command goes on.")
        sys.exit(130)
