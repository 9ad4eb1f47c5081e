"""`grokscope ablate`: what a network can still do when its weights are only waves, and when the waves are gone."""

import math

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
from grokscope.cli.options import DEFAULT_STORE, StoreOption
from grokscope.cli.values import file_name, network_name, number, numbers, print_json
from grokscope.measure import Ablations
from grokscope.measure import ablate as ablate_network
from grokscope.measure.ablation.ablation import KEY_IPR, AblationRow

_MEANINGS = {
    "full": "as trained",
    "own_wave": "all vectors: nearest wave",
    "shared_wave": "all neurons: one shared frequency",
    "analytic_family": "all neurons: as in Equation 2",
    "restricted": "logits: only key frequencies",
    "excluded": "logits: without key frequencies",
}


def ablate(
    run: NetworkArgument,
    out: OutOption = None,
    as_json: JsonOption = False,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Replace the neurons of a two-layer network by pure waves, keep or remove frequencies, and measure the result.

    This takes a few seconds. A table (.csv) has one row for each ablation and each number k of neurons or frequencies.

    [bold]Examples[/bold]

    grokscope ablate 41630c

    grokscope ablate 41630c --out waves.png --out waves.csv

    grokscope ablate analytic --json
    """
    check_outputs(out, as_json=as_json)
    result = load_network(run, store)
    ablations = ablate_network(result.spec.model, result.trained_weights(), result.dataset(), result.spec.training.loss)
    if as_json:
        print_json(_as_dict(network_name(result), ablations))
        return
    _say(ablations)
    from grokscope.plots import draw_ablations, settings_line

    title = "the analytic network" if result.engine == "analytic" else settings_line(result)
    write_outputs(
        out,
        file_name(result, "ablate"),
        lambda: draw_ablations(ablations, title),
        lambda: _table(ablations),
    )


def _say(ablations: Ablations) -> None:
    typer.echo(
        f"{'':33} {'train':>7} {'test':>7} {'corrupted':>10} {'recovered':>10} {'train loss':>11} {'test loss':>10}"
    )
    for name, meaning in _MEANINGS.items():
        rows = ablations.series(name)
        if rows:
            typer.echo(_line(meaning, rows[-1]))
    typer.echo(_frequencies_words(ablations))
    if "input_waves" in ablations.missing:
        typer.echo(f"Note: {ablations.missing['input_waves']}.")
    if "progress" in ablations.missing:
        typer.echo(f"There are no restricted and excluded logits: {ablations.missing['progress']}.")
    typer.echo(_distance_words(ablations))
    if ablations.pairs_left_out and "progress" not in ablations.missing:
        typer.echo(
            f"Restricted and excluded logits leave out {ablations.pairs_left_out} pairs that are not in the group."
        )


def _line(meaning: str, row: AblationRow) -> str:
    it = row.behaviour
    accuracies = [it.train_accuracy, it.test_accuracy, it.corrupted_accuracy, it.recovered_accuracy]
    cells = [
        f"{'—' if math.isnan(value) else f'{value:.1%}':>{width}}"
        for value, width in zip(accuracies, (7, 7, 10, 10), strict=True)
    ]
    losses = [
        f"{'—' if math.isnan(value) else f'{value:.3g}':>{width}}"
        for value, width in ((it.train_loss, 11), (it.test_loss, 10))
    ]
    return f"{meaning:33} {' '.join([*cells, *losses])}"


def _frequencies_words(ablations: Ablations) -> str:
    rows = ablations.series("frequencies")
    enough = next((row.k for row in rows if row.behaviour.test_accuracy >= 0.9), None)
    return (
        f"Test accuracy stays below 90 % with any number of its {len(rows)} strongest frequencies."
        if enough is None
        else f"The {enough} strongest of {len(rows)} frequencies are enough for a test accuracy of 90 %."
    )


def _distance_words(ablations: Ablations) -> str:
    if math.isnan(ablations.weight_distance):
        reason = ablations.missing.get("analytic_family", "no neuron is alive")
        return f"There is no distance to Equation 2: {reason}."
    groups = []
    for high, kind in ((True, f"with IPR ≥ {KEY_IPR}"), (False, "below")):
        mean = ablations.mean_distance(high=high)
        groups.append(f"no neuron is {kind}" if math.isnan(mean) else f"mean of the neurons {kind}: {mean:.3f}")
    return (
        f"Relative distance of the weights to Equation 2: {ablations.weight_distance:.3f} in all; {'; '.join(groups)}. "
        f"{int(ablations.high.sum())} of {len(ablations.ipr)} neurons have IPR ≥ {KEY_IPR}."
    )


def _table(ablations: Ablations) -> Table:
    rows = [row.to_dict() for row in ablations.rows]
    return {column: [row[column] for row in rows] for column in rows[0]}


def _as_dict(run: str, ablations: Ablations) -> dict[str, object]:
    return {
        "run_id": run,
        "rows": [row.to_dict() for row in ablations.rows],
        "missing": ablations.missing,
        "key_frequencies": list(ablations.key_frequencies),
        "pairs_left_out": ablations.pairs_left_out,
        "distance": {
            "weights": number(ablations.weight_distance),
            "high_ipr_mean": number(ablations.mean_distance(high=True)),
            "low_ipr_mean": number(ablations.mean_distance(high=False)),
            "high_ipr_threshold": KEY_IPR,
        },
        "neurons": {
            "ipr": numbers(ablations.ipr),
            "frequency": [None if place < 0 else place for place in ablations.frequency.tolist()],
            "distance": None if ablations.distance is None else numbers(ablations.distance),
        },
    }
