"""`grokscope train`: one run."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from grokscope.cli.options import (
    DEFAULT_STORE,
    DataDirOption,
    DeviceOption,
    EngineOption,
    SnapshotsOption,
    StoreOption,
    TrackDirOption,
    TrackOption,
    note,
    store_flag,
)
from grokscope.cli.spec_flags import takes_fields
from grokscope.cli.values import assignments
from grokscope.errors import SpecError
from grokscope.snapshots import snapshots_from
from grokscope.spec import RunSpec
from grokscope.sweeping import train as train_run

_RUNNING = "Running"


@takes_fields
def train(
    fields: dict[str, str],
    *,
    scale_with_batch: Annotated[
        bool,
        typer.Option(
            "--scale-with-batch",
            help="The paper's scaling for batch size B: steps · 256/B and learning rate · √(B/256).",
            rich_help_panel="Training",
        ),
    ] = False,
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
    data_dir: DataDirOption = None,
    track: TrackOption = None,
    track_dir: TrackDirOption = None,
    store: StoreOption = DEFAULT_STORE,
    save_weights: Annotated[
        bool, typer.Option("--save-weights", help="Store the final network too.", rich_help_panel=_RUNNING)
    ] = False,
    snapshots: SnapshotsOption = None,
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

    grokscope train --weight-decay 5 --snapshots all
    """
    base = RunSpec.from_file(spec) if spec else RunSpec()
    more = assignments(settings or ())
    if twice := fields.keys() & more.keys():
        raise SpecError(f"--set names {min(twice)}, which has a flag of its own: give it once")
    run_spec = base.updated_from_text(fields | more)
    if scale_with_batch:
        if run_spec.training.batch_size is None:
            raise SpecError("--scale-with-batch needs a --batch-size")
        run_spec = run_spec.with_batches_of(run_spec.training.batch_size)

    try:
        result = train_run(
            run_spec,
            store=store,
            weights=save_weights,
            snapshots=snapshots_from(snapshots, "--snapshots"),
            force=force,
            engine=engine,
            device=device,
            track=track,
            track_dir=track_dir,
        )
    except KeyboardInterrupt:
        note("Stopped. The same command goes on.")
        sys.exit(130)
    if as_json:
        typer.echo(json.dumps(result.to_dict(), allow_nan=False))
    else:
        typer.echo(result.describe())
        typer.echo(f"Run {result.run_id} ({result.engine}, {result.seconds:.1f} s) is in {store}.")
        typer.echo(f"Look at it with: grokscope show {result.run_id}{store_flag(store)}")
