"""`grokscope dynamics`: what happened during a run, and when."""

from dataclasses import asdict
from typing import Annotated

import typer

from grokscope.cli.analysis import JsonOption, OutOption, Table, check_outputs, write_outputs
from grokscope.cli.options import DEFAULT_STORE, RunArgument, StoreOption, note
from grokscope.cli.values import print_json
from grokscope.errors import GrokscopeError
from grokscope.measure import Ledger, LedgerRecorder, training_events
from grokscope.measure.ledger import NEVER
from grokscope.result import RunResult, row_to_dict
from grokscope.store import Store
from grokscope.sweeping import train_again


def dynamics(
    run: RunArgument,
    ledger: Annotated[
        bool,
        typer.Option(
            "--ledger",
            help="Train the run again and record when each corrupted example was memorised, recovered and lost again.",
        ),
    ] = False,
    out: OutOption = None,
    as_json: JsonOption = False,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Show when a run memorised, grokked, unlearned the corrupted labels and forgot the rule, from its stored curve.

    Events are located between measured steps. Train with a smaller --measure-every to locate them more exactly.

    [bold]Examples[/bold]

    grokscope dynamics 41630c

    grokscope dynamics 41630c --out events.png --out curve.csv

    grokscope dynamics 41630c --ledger --out fates.png --out fates.csv

    grokscope dynamics 41630c --json
    """
    check_outputs(out, as_json=as_json)
    if run.startswith("analytic"):
        raise GrokscopeError("the analytic network was never trained, so it has no dynamics; name a stored run")
    result = Store(store, create=False).load(run)
    if not result.curve:
        raise GrokscopeError(
            f"run {result.run_id} diverged at step {result.diverged_step}, before it was measured, so it has no curve"
        )
    kept = _trained_again(result) if ledger else None
    if as_json:
        print_json(_as_dict(result, kept))
        return
    _say(result, kept)
    from grokscope.plots import draw_dynamics, draw_ledger, settings_line

    if kept is None:
        write_outputs(
            out,
            f"{result.run_id}-dynamics",
            lambda: draw_dynamics(result, training_events(result.curve), settings_line(result)),
            lambda: _curve_table(result),
        )
    else:
        write_outputs(
            out,
            f"{result.run_id}-ledger",
            lambda: draw_ledger(kept, settings_line(result)),
            lambda: _ledger_table(kept),
        )


def _trained_again(stored: RunResult) -> Ledger:
    """The ledger of a run: predictions are not stored, so it is trained again, by the same engine if that is here."""
    stored = stored.resolved()
    dataset = stored.dataset()
    if not dataset.corrupted.any():
        raise GrokscopeError(f"run {stored.run_id} has no corrupted examples, so it has no ledger")
    recorder = LedgerRecorder(dataset)
    again = train_again(stored, on_evaluation=recorder)
    apart = _largest_difference(stored, again)
    if apart is None:
        note(f"The new run has {len(again.curve)} measured steps, the stored run {len(stored.curve)}.")
    elif apart > 0:
        note(f"Corrupted accuracies differ from the stored curve by up to {apart:.1%}, because of rounding.")
    return recorder.ledger()


def _largest_difference(stored: RunResult, again: RunResult) -> float | None:
    """The largest difference of the corrupted accuracies; None if the measured steps are not the same."""
    if [row.step for row in stored.curve] != [row.step for row in again.curve]:
        return None
    pairs = zip(stored.curve, again.curve, strict=True)
    return max((abs(old.corrupted_accuracy - new.corrupted_accuracy) for old, new in pairs), default=0.0)


def _say(result: RunResult, ledger: Ledger | None) -> None:
    typer.echo(result.describe())
    events = training_events(result.curve)
    for name, event in events.events().items():
        typer.echo(f"{name + ':':11} {event.describe()}")
    if events.delay:
        delay = events.delay
        range_ = "" if delay.at_least == delay.at_most else f" (between {delay.at_least} and {delay.at_most})"
        typer.echo(f"{'delay:':11} {delay.measured} steps from memorising to grokking{range_}")
    else:
        typer.echo(f"{'delay:':11} none: the run did not both memorise and grok")
    typer.echo(
        f"Measured {result.spec.training.describe_measuring()}. "
        "A change that came and went between two measured steps is not seen."
    )
    if ledger is not None:
        typer.echo(_ledger_words(ledger))


def _ledger_words(ledger: Ledger) -> str:
    count = ledger.counts()
    wrong = count["corrupted"] - count["drawn_true"]
    return (
        f"Of {count['corrupted']} corrupted examples, {count['drawn_true']} drew the true label and are not counted "
        f"below. Of the other {wrong}, {count['ever_memorised']} were memorised at some measured step and "
        f"{count['ever_recovered']} were recovered at some measured step. {count['memorised_then_recovered']} were "
        f"memorised and end up recovered; {count['recovered_then_lost']} were recovered and lost again. At the end "
        f"{count['finally_memorised']} are memorised, {count['finally_recovered']} are recovered, and "
        f"{count['finally_other']} get another answer."
    )


def _as_dict(result: RunResult, ledger: Ledger | None) -> dict[str, object]:
    events = training_events(result.curve)
    content: dict[str, object] = {
        "run_id": result.run_id,
        "phase": result.phase.value if result.phase else None,
        "diverged_step": result.diverged_step,
        "measure_every": result.spec.training.measure_every,
        "events": {name: asdict(event) for name, event in events.events().items()},
        "delay": asdict(events.delay) if events.delay else None,
        "curve": [row_to_dict(row) for row in result.curve],
    }
    if ledger is not None:
        columns = _ledger_table(ledger)
        examples = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        content["ledger"] = {"counts": ledger.counts(), "examples": examples}
    return content


def _curve_table(result: RunResult) -> Table:
    rows = [row_to_dict(row) for row in result.curve]
    return {column: [row[column] for row in rows] for column in rows[0]}


def _ledger_table(ledger: Ledger) -> Table:
    """One row for each corrupted example; a step that does not exist is None."""
    steps = {
        "memorised_step": ledger.memorised_step,
        "recovered_step": ledger.recovered_step,
        "lost_step": ledger.lost_step,
    }
    return {
        "m": ledger.examples[:, 0].tolist(),
        "n": ledger.examples[:, 1].tolist(),
        "label": ledger.label.tolist(),
        "truth": ledger.truth.tolist(),
        **{name: [None if step == NEVER else step for step in values.tolist()] for name, values in steps.items()},
        "final": ledger.final,
    }
