"""One run for the page, as far as it can be shown without its weights.

view = run_view(store, "41630c9a5be1d27f")
view.events[0].words
"""

import re

import numpy as np
import numpy.typing as npt

from grokscope.errors import DamagedError, StoreError
from grokscope.explorer import models as m
from grokscope.explorer.numbers import numbers
from grokscope.explorer.words import settings_of, text_of
from grokscope.measure import NeuronSpectra, training_events
from grokscope.result import RunResult
from grokscope.spec import FAMILIES, RunSpec
from grokscope.store import CellOutcome, Store


def run_view(store: Store, run_id: str) -> m.RunView:
    """A run as far as it can be shown without its weights, whatever became of it."""
    try:
        result = store.load(run_id)
    except DamagedError as error:
        return m.RunView(run_id=run_id, state="damaged", words=str(error))
    except StoreError:
        return _unfinished(store, run_id)
    stored = store.entry(result.run_id)
    spec = result.spec
    return m.RunView(
        run_id=result.run_id,
        state=result.status,
        phase=result.phase.value if result.phase else None,
        words=result.describe(),
        settings=settings_of(spec),
        name=stored.name,
        tags=list(stored.tags),
        note=stored.note,
        finished_at=stored.finished_at,
        seconds=round(result.seconds, 2),
        engine=result.engine,
        has_weights=result.weights is not None,
        own_code=spec.code(),
        spec=spec_view(spec),
        curve={name: numbers(values) for name, values in result.to_columns().items()} if result.curve else {},
        events=_events(result),
        neurons=neurons_view(result.neurons, result) if result.neurons is not None else None,
        ipr_history=[] if result.ipr_history is None else result.ipr_history.tolist(),
    )


def recorded_view(spec: RunSpec, cell: CellOutcome) -> m.RunView:
    """A run that only a table of cells knows: how it ended, and how to train it."""
    accuracies = [
        f"{name} accuracy {value:.3f}"
        for name, value in (("train", cell.train_accuracy), ("test", cell.test_accuracy))
        if value is not None
    ]
    ended = f" ({', '.join(accuracies)})" if accuracies else ""
    return m.RunView(
        run_id=cell.run_id,
        state="recorded",
        phase=cell.outcome,
        words=f"Of this run only the outcome is known{ended}, from a table of cells. To see it, train it again.",
        settings=settings_of(spec),
        own_code=spec.code(),
        spec=spec_view(spec),
    )


def _unfinished(store: Store, run_id: str) -> m.RunView:
    failures, _ = store.sound_and_damaged_failures()
    failure = next((failure for failure in failures if failure.run_id == run_id), None)
    if failure:
        return m.RunView(
            run_id=run_id,
            state="failed",
            words=f"It failed: {failure.error}",
            settings=settings_of(failure.spec),
            finished_at=failure.failed_at,
            own_code=failure.spec.code(),
            spec=spec_view(failure.spec),
            traceback=failure.traceback,
        )
    if holder := store.holder(run_id):
        return m.RunView(run_id=run_id, state="running", words=f"It is being trained by {holder}.")
    return m.RunView(run_id=run_id, state="missing", words="It has not been trained yet.")


def _events(result: RunResult) -> list[m.EventView]:
    if not result.curve:
        return []
    found = training_events(result.curve).events()
    return [m.EventView(name=name, step=event.step, words=event.describe()) for name, event in found.items()]


def neurons_view(spectra: NeuronSpectra, result: RunResult) -> m.NeuronsView:
    """IPR, strongest wave and, if the weights were kept, the norm of every neuron."""
    norm, what = None, "neurons"
    if result.weights is not None and not result.spec.unresolved:
        own = result.spec.model.input_neurons(result.weights)
        norm = numbers(own.norms()) if own is not None else None
        what = own.what if own is not None else what
    frequency = spectra.frequency.max(axis=0) if spectra.frequency.shape[0] == 1 else _common(spectra.frequency)
    return m.NeuronsView(
        what=what,
        ipr=numbers(np.where(spectra.dead, np.nan, spectra.neuron_ipr)),
        frequency=[wave if wave >= 0 else None for wave in frequency.tolist()],
        gini=numbers(spectra.gini.mean(axis=0, dtype=np.float64)),
        norm=norm,
    )


def _common(frequency: npt.NDArray[np.int16]) -> npt.NDArray[np.int16]:
    """The strongest wave of the first vector where all vectors agree, −1 where they do not [N]."""
    return np.where((frequency == frequency[0]).all(axis=0), frequency[0], np.int16(-1))


def spec_view(spec: RunSpec) -> m.SpecView:
    """A spec as a command, as TOML and as Python: only what differs from the defaults, but all of it in TOML.

    >>> print(spec_view(RunSpec().updated({"task.modulus": 31})).command)
    grokscope train --set task.modulus=31
    """
    changed = {
        f"{section}.{field}": getattr(getattr(spec, section), field)
        for section in (*FAMILIES, "training")
        for field in getattr(spec, section).identity
        if hasattr(getattr(spec, section), field)
    }
    flags = "".join(f" --set {_quoted(f'{path}={_as_text(value)}')}" for path, value in changed.items())
    inner = "".join(f"    {path!r}: {_plain_python(value)!r},\n" for path, value in changed.items())
    fields = f"{{\n{inner}}}" if changed else "{}"
    python = f"import grokscope as gs\n\nspec = gs.RunSpec().updated({fields})\nresult = gs.train(spec, weights=True)\n"
    return m.SpecView(command=f"grokscope train{flags}", toml=spec.to_toml(), python=python)


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return ",".join(map(str, value))
    return text_of(value) if not isinstance(value, float) else repr(value)


def _plain_python(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[\w.,=:@%+/-]+", text) else "'" + text.replace("'", "'\"'\"'") + "'"
