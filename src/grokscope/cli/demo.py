"""`grokscope demo`: the three networks of Figure 1."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from grokscope.cli.gathering import ending_when_stopped
from grokscope.cli.options import DEFAULT_STORE, EngineOption, StoreOption, note, store_flag
from grokscope.errors import FailedRunsError
from grokscope.experiments.evidence import missing_networks
from grokscope.experiments.gathering import Work, gather
from grokscope.experiments.scale import Amount
from grokscope.result import RunResult
from grokscope.store import Store
from grokscope.sweeps.running import Running, check_engines


def demo(
    store: StoreOption = DEFAULT_STORE,
    out: Annotated[Path, typer.Option(help="Where to write the figure.")] = Path("grokscope-figures/fig01.png"),
    engine: EngineOption = "auto",
) -> None:
    """Train the three networks of Figure 1 at full scale and draw them.

    Runs that are in the store already are not trained again.
    """
    from grokscope.experiments.dense import densely
    from grokscope.experiments.paper import fig01
    from grokscope.plots import check_figure_path, save_figure

    check_figure_path(out)
    specs, running = tuple(map(densely, fig01.specs())), Running(engine=engine)
    check_engines(running, specs)
    started = time.perf_counter()
    missing = missing_networks(Store(store, create=True), specs)
    if len(missing) < len(specs):
        note(f"{len(specs) - len(missing)} of {len(specs)} runs are in the store {store} already.")
    with ending_when_stopped():
        opened = gather(Work((), (), specs, (), Amount("paper"), running, store))
    if failed := missing_networks(opened, specs):
        raise FailedRunsError(
            f"{len(failed)} of the networks could not be trained: `grokscope status{store_flag(store)}` has the details"
        )
    ordered = [opened.load(spec.run_id) for spec in specs]
    Console().print(_table(ordered))
    typer.echo(f"Figure: {save_figure(fig01.picture(ordered), out)}")
    typer.echo(f"Took {time.perf_counter() - started:.0f} s. The runs are in {store}: grokscope runs list")


def _table(results: list[RunResult]) -> Table:
    table = Table(title="Figure 1: p = 97, N = 500, α = 0.5, ξ = 0.35", box=None)
    for heading in ("wd", "phase", "train", "test", "corrupted", "clean", "mean IPR", "seconds"):
        table.add_column(heading, justify="left" if heading == "phase" else "right", no_wrap=True)
    for result in results:
        row = result.final
        table.add_row(
            f"{result.spec.optimizer.weight_decay:g}",
            result.outcome,
            *(
                f"{accuracy:.3f}"
                for accuracy in (
                    row.train_accuracy,
                    row.test_accuracy,
                    row.corrupted_accuracy,
                    row.clean_accuracy,
                )
            ),
            f"{row.mean_ipr:.3f}",
            f"{result.seconds:.1f}",
        )
    return table
