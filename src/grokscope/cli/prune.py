"""`grokscope prune`: what a network still knows without some of its neurons."""

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from grokscope.cli.analysis import (
    JsonOption,
    NetworkArgument,
    OutOption,
    Table,
    check_outputs,
    load_network,
    write_outputs,
)
from grokscope.cli.options import DEFAULT_STORE, DataDirOption, StoreOption
from grokscope.cli.values import file_name, network_name, print_json
from grokscope.measure import BAND, ORDERS, Pruning, PruningCurve, measure_pruning
from grokscope.phases import HIGH_ACCURACY
from grokscope.result import RunResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Values = list[float | None]  # [N + 1]; None for a value that does not exist


def prune(
    run: NetworkArgument,
    random_orders: Annotated[
        int, typer.Option("--random-orders", min=1, metavar="COUNT", help="How many random orders to average over.")
    ] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random orders.")] = 0,
    out: OutOption = None,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Remove the neurons of a two-layer network one at a time, without retraining, and track what it still knows.

    There are two orders by IPR: lowest first and highest first.
    The controls are smallest weights first, smallest scale |γ| of a Batch- or LayerNorm first, and random order.

    [bold]Examples[/bold]

    grokscope prune 41630c

    grokscope prune 41630c --random-orders 100 --out pruning.pdf --out pruning.csv

    grokscope prune analytic --json
    """
    check_outputs(out, as_json=as_json)
    result = load_network(run, store)
    pruning = measure_pruning(
        result.trained_weights(),
        result.spec.model,
        result.dataset(),
        result.spec.training.loss,
        random_orders=random_orders,
        seed=seed,
    )
    if as_json:
        print_json(_to_dict(result, pruning, random_orders, seed))
        return
    for line in _in_words(result, pruning, random_orders):
        typer.echo(line)

    def draw() -> "Figure":
        from grokscope.plots import draw_pruning, settings_line

        return draw_pruning(pruning, result.dataset().corruption, settings_line(result))

    write_outputs(out, file_name(result, "prune"), draw, lambda: _table(pruning))


def _in_words(result: RunResult, pruning: Pruning, random_orders: int) -> Iterator[str]:
    whole = pruning.orders["random"]
    N = len(whole.test_accuracy) - 1
    dead = int(result.neurons.dead.sum()) if result.neurons is not None else 0
    yield (
        f"{result.phase.label if result.phase else 'A network'} with {N} neurons"
        + (f", {dead} of them dead" if dead else "")
        + f". Test accuracy {whole.test_accuracy[0]:.1%}, train accuracy {whole.train_accuracy[0]:.1%}"
        + (
            f", corrupted labels memorised {whole.corrupted_accuracy[0]:.1%}."
            if not math.isnan(whole.corrupted_accuracy[0])
            else ". No label is corrupted."
        )
    )
    if whole.test_accuracy[0] < HIGH_ACCURACY:
        yield (
            f"At a test accuracy of {whole.test_accuracy[0]:.1%} the following numbers say little: a network that "
            "knows nothing may lie within 1 % of it."
        )
    yield "The most neurons that can go with test accuracy within 1 % of that (in brackets: before it falls more):"
    for name, curve in pruning.orders.items():
        label = f"{ORDERS[name]} (mean of {random_orders})" if name == "random" else ORDERS[name]
        yield f"  {label:26} {curve.prunable:5} = {curve.prunable / N:4.0%}  ({curve.prunable_throughout})"


def _to_dict(result: RunResult, pruning: Pruning, random_orders: int, seed: int) -> dict[str, object]:
    N = len(pruning.orders["random"].test_accuracy) - 1
    return {
        "run_id": network_name(result),
        "neurons": N,
        "random_orders": random_orders,
        "seed": seed,
        "band_percentiles": BAND,
        "prunable": {
            name: {
                "number": curve.prunable,
                "fraction": curve.prunable / N,
                "number_throughout": curve.prunable_throughout,
                "fraction_throughout": curve.prunable_throughout / N,
            }
            for name, curve in pruning.orders.items()
        },
        "orders": _lists_of_orders(pruning),
    }


def _lists_of_orders(pruning: Pruning) -> dict[str, dict[str, Values]]:
    """Every quantity of every order; for random orders, also the edges of the band."""
    orders = {
        name: {"fraction_pruned": curve.fraction_pruned.tolist()} | _lists(curve)
        for name, curve in pruning.orders.items()
    }
    orders["random"] |= _lists(pruning.random_low, "_low") | _lists(pruning.random_high, "_high")
    return orders


def _lists(curve: PruningCurve, suffix: str = "") -> dict[str, Values]:
    """The quantities of a curve for JSON, which has no NaN."""
    return {
        f"{name}{suffix}": [value if math.isfinite(value) else None for value in values.tolist()]
        for name, values in asdict(curve).items()
    }


def _table(pruning: Pruning) -> Table:
    """One row for each order and number of pruned neurons. Only random orders have a band."""
    orders = _lists_of_orders(pruning)
    rows = [(name, pruned) for name, lists in orders.items() for pruned in range(len(lists["fraction_pruned"]))]
    columns: Table = {"order": [name for name, _ in rows], "pruned": [pruned for _, pruned in rows]}
    for quantity in orders["random"]:
        columns[quantity] = [orders[name][quantity][j] if quantity in orders[name] else None for name, j in rows]
    return columns
