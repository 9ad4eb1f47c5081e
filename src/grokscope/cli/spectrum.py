"""`grokscope spectrum`: the waves in the neurons of a network."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import numpy as np
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
from grokscope.cli.values import file_name, network_name, number, numbers, places_from_text, print_json
from grokscope.measure import NeuronWaves, WaveSummary, neuron_waves, output_waves, why_no_relation
from grokscope.measure.spectra.array_names import where_vectors_lie
from grokscope.measure.spectra.waves import HIGH_IPR, LOW_IPR, phase_relation
from grokscope.result import RunResult, row_to_dict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_NEURONS = 6  # more would not fit into a picture


def spectrum(
    run: NetworkArgument,
    out: OutOption = None,
    neurons: Annotated[
        str | None,
        typer.Option(
            metavar="K,…",
            help="Neurons whose weights to show, before and after training.",
            show_default="those with the highest and the lowest IPR",
        ),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Decompose the weights of a network into waves: frequencies, phases, IPR.

    [bold]Examples[/bold]

    grokscope spectrum 41630c

    grokscope spectrum 41630c --neurons 0,7 --out spectrum.pdf --out neurons.csv

    grokscope spectrum analytic --json
    """
    check_outputs(out, as_json=as_json)
    result = load_network(run, store)
    spec, weights = result.spec, result.trained_weights()
    waves, outputs = neuron_waves(spec.model, weights, spec.task), output_waves(spec.model, weights, spec.task)
    shown = _shown_neurons(neurons, waves)
    if as_json:
        print_json(_content(result, waves, outputs, shown))
        return
    for line in _words(result, waves, outputs):
        typer.echo(line)
    write_outputs(
        out,
        file_name(result, "spectrum"),
        draw=lambda: _draw(result, shown),
        table=lambda: _table([waves, *([outputs] if outputs else [])]),
    )


def _shown_neurons(text: str | None, waves: NeuronWaves) -> list[int]:
    if text is not None:
        return places_from_text("--neurons", text, len(waves.wave), "neurons", _MOST_NEURONS)
    return waves.extremes()


def _draw(result: RunResult, shown: list[int]) -> "Figure":
    from grokscope.plots import draw_spectrum

    return draw_spectrum(result, shown)


def _groups(waves: NeuronWaves) -> dict[str, WaveSummary]:
    return {"all": waves.summary(), "high_ipr": waves.summary(waves.high), "low_ipr": waves.summary(waves.low)}


def _words(result: RunResult, waves: NeuronWaves, outputs: NeuronWaves | None) -> list[str]:
    """The main findings, as sentences."""
    lines = [f"{network_name(result)}: {_about(waves)}"]
    if outputs is not None:
        lines.append(f"Its output: {_about(outputs)}")
    elif (both := result.spec.model.output_neurons(result.trained_weights())) is not None:
        lines.append(f"Its {both.layer} is its {waves.layer}.")
    if not waves.live.any():
        return lines
    groups = _groups(waves)
    if len(waves.vectors) > 1:
        places = where_vectors_lie(waves.neurons, result.trained_weights())
        arrays = [places[letter][0] if letter in places else letter for letter in waves.vectors]
        names = " and ".join(", ".join(arrays).rsplit(", ", 1))
        lines.append(f"Neurons in which {names} have the same strongest wave: {_compared(groups, 'agreement', '.0%')}.")
    reason = why_no_relation(waves)
    if reason:
        lines.append(f"No phase relation: {reason}.")
    else:
        residuals = _compared(groups, "mean_residual", ".2g")
        lines.append(f"Mean of |{phase_relation(waves.waves)}| (random phases: 1.57): {residuals}.")
    lines.append(f"Amplitude of the second wave over the strongest: {_compared(groups, 'second_ratio', '.2g')}.")
    everything = groups["all"]
    if not np.isnan(everything.second_double):
        lines.append(
            f"The second wave has twice the frequency of the strongest in {everything.second_double:.0%} of the "
            f"neurons, three times the frequency in {everything.second_triple:.0%}, and is the constant in "
            f"{everything.second_constant:.0%}. By chance it would be {1 / (waves.power.shape[1] - 1):.0%} each."
        )
    return lines


def _about(waves: NeuronWaves) -> str:
    groups = _groups(waves)
    size = len(waves.wave)
    what = (
        f"{size} {waves.neurons.what} of the {waves.layer}"
        if waves.neurons.what != "neurons"
        else f"{size} {waves.layer} neurons"
    )
    dead = size - groups["all"].neurons
    if dead == size:
        return f"{what}, all dead."
    most = np.argsort(-waves.counts(), kind="stable")[:3]
    held = ", ".join(f"{_frequency(waves, wave)} ({waves.counts()[wave]})" for wave in most if waves.counts()[wave])
    return (
        f"{what}, {dead} dead; mean IPR {waves.spectra.mean_ipr:.3f}, {groups['high_ipr'].neurons} above {HIGH_IPR}, "
        f"{groups['low_ipr'].neurons} below {LOW_IPR}. "
        f"Of {waves.power.shape[1]} waves, {groups['all'].frequencies} are the strongest of some neuron, "
        f"{groups['high_ipr'].frequencies} of one with IPR above {HIGH_IPR}. Most common frequencies (neurons): {held}."
    )


def _compared(groups: dict[str, WaveSummary], field: str, form: str) -> str:
    """One number for each group of neurons: all, high IPR, low IPR. Empty groups are left out."""
    names = {"all": "all", "high_ipr": f"IPR above {HIGH_IPR}", "low_ipr": f"IPR below {LOW_IPR}"}
    values = {name: getattr(groups[group], field) for group, name in names.items()}
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items() if not np.isnan(value)) or "none"


def _frequency(waves: NeuronWaves, wave: int) -> str | int | None:
    """The frequency of a wave, for a table or a sentence; several frequencies are separated by blanks."""
    frequency = waves.frequency_of(wave)
    return " ".join(map(str, frequency)) if isinstance(frequency, list) else frequency


def _content(result: RunResult, waves: NeuronWaves, outputs: NeuronWaves | None, shown: list[int]) -> dict[str, object]:
    curve = [row_to_dict(row) for row in result.curve]
    return {
        "run_id": network_name(result),
        "task": result.spec.task.describe(),
        "operation": getattr(result.spec.task, "operation", None),
        "modulus": result.spec.task.classes,
        **_neurons_content(waves),
        "residual": numbers(waves.residual),
        "mean_residual": number(waves.summary().mean_residual),
        "no_phase_relation": why_no_relation(waves),
        "outputs": _neurons_content(outputs) if outputs else None,
        "mean_ipr_curve": {"step": [row["step"] for row in curve], "mean_ipr": [row["mean_ipr"] for row in curve]},
        "weights": _weights_content(result, waves, shown),
    }


def _neurons_content(waves: NeuronWaves) -> dict[str, object]:
    counts, high = waves.counts(), waves.counts(waves.high)
    return {
        "layer": waves.layer,
        "vectors": waves.vectors,
        "dead_neurons": int((~waves.live).sum()),
        "mean_ipr": number(waves.spectra.mean_ipr),
        "ipr": numbers(waves.spectra.neuron_ipr),
        "frequency": [waves.frequency_of(wave) for wave in waves.wave],
        "counts": [
            {"frequency": waves.frequency_of(wave), "neurons": int(counts[wave]), "high_ipr_neurons": int(high[wave])}
            for wave in range(len(counts))
        ],
        "agreement": number(waves.summary().agreement),
        "second_frequency": [waves.frequency_of(wave) for wave in waves.second],
        "second_ratio": numbers(waves.second_ratio),
        "groups": {
            name: {
                field: number(value) if isinstance(value, float) else value for field, value in asdict(group).items()
            }
            for name, group in _groups(waves).items()
        },
    }


def _weights_content(result: RunResult, waves: NeuronWaves, shown: list[int]) -> list[dict[str, object]]:
    before, after = result.weights_before(), waves.neurons.vectors
    first = result.spec.model.input_neurons(before) if before else None
    earlier = first.vectors if first else None
    return [
        {
            "neuron": k,
            "before": {name: numbers(rows[k]) for name, rows in earlier.items()} if earlier else None,
            "after": {name: numbers(rows[k]) for name, rows in after.items()},
        }
        for k in shown
    ]


def _table(ends: list[NeuronWaves]) -> Table:
    """One row for each neuron. Columns of a vector that a neuron does not have are empty."""
    names = list(dict.fromkeys(name for waves in ends for name in waves.vectors))
    tables = [_columns(waves, names) for waves in ends]
    return {column: [value for table in tables for value in table[column]] for column in tables[0]}


def _columns(waves: NeuronWaves, names: list[str]) -> Table:
    nothing = [None] * len(waves.wave)
    own = {name: place for place, name in enumerate(waves.vectors)}

    def of_vectors(measure: str, values: Callable[[int], Sequence[object]]) -> Table:
        return {f"{measure}_{name}": values(own[name]) if name in own else nothing for name in names}

    def frequencies(waves_of_neurons: Iterable[int]) -> list[object]:
        return [_frequency(waves, wave) for wave in waves_of_neurons]

    spectra = waves.spectra
    return {
        "neuron": range(len(waves.wave)),
        "layer": [waves.layer] * len(waves.wave),
        "ipr": numbers(spectra.neuron_ipr),
        **of_vectors("ipr", lambda vector: numbers(spectra.ipr[vector])),
        "gini": numbers(spectra.gini.mean(axis=0, dtype=np.float64)),
        "frequency": frequencies(waves.wave),
        **of_vectors("frequency", lambda vector: frequencies(spectra.frequency[vector])),
        **of_vectors("phase", lambda vector: numbers(waves.phase[vector])),
        "residual": numbers(waves.residual),
        "second_frequency": frequencies(waves.second),
        "second_ratio": numbers(waves.second_ratio),
        "norm": numbers(waves.norm),
        "norm_scale": nothing if spectra.norm_scale is None else numbers(spectra.norm_scale),
    }
