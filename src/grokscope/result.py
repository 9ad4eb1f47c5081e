"""What a run leaves behind.

    spec → dataset → model → training → measurements → result

Each stage adds fields to `RunResult`; a stored run is read back as one.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from grokscope.engines import TrainingState, initial_state
from grokscope.errors import GrokscopeError
from grokscope.measure import COLUMNS, NeuronSpectra, Row, measure_network, neuron_spectra
from grokscope.models import Weights, analytic_weights
from grokscope.phases import Phase, classify, describe_network
from grokscope.spec import RunSpec
from grokscope.tables import data_frame
from grokscope.tasks import Dataset

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from torch import nn

    from grokscope.models.module import NetworkModule

Status = Literal["finished", "diverged", "stopped"]


@dataclass(frozen=True, repr=False)
class RunResult:
    """One run, from its spec to its phase. In a notebook it shows itself."""

    spec: RunSpec
    # training
    engine: str
    seconds: float
    status: Status
    diverged_step: int | None  # the first step at which a loss was not a finite number
    weights: Weights | None  # of the final network; None if they were not kept
    # measurements
    curve: tuple[Row, ...]
    neurons: NeuronSpectra | None  # at the input of the final network; None if it diverged or there are no waves
    outputs: NeuronSpectra | None  # at its output; None too for a two-layer network, whose `neurons` have both ends
    # phases
    phase: Phase | None  # None if it diverged
    # [rows of the curve, IPR_BINS]  how many neurons had which IPR; None without waves, and in runs of older releases
    ipr_history: npt.NDArray[np.unsignedinteger] | None = None
    # what was kept on the way
    weights_at: Mapping[int, Weights] = field(default_factory=dict)  # by step; `snapshots` says if there are none
    checkpoint: "Checkpoint | None" = None  # of a run that a callback stopped: where it can go on

    @property
    def run_id(self) -> str:
        """The spec's content hash."""
        return self.spec.run_id

    @property
    def final(self) -> Row:
        """The last row of the curve."""
        return self.curve[-1]

    @property
    def settled(self) -> bool:
        """Whether it ended early because its phase was decided (`training.settle`)."""
        return self.status == "finished" and bool(self.curve) and self.final.step < self.spec.training.steps

    def dataset(self) -> Dataset:
        """The data the network was trained on, made again from the spec."""
        return self.spec.dataset()

    @cached_property
    def corruption(self) -> float:
        """The fraction of the training set whose labels were drawn anew; as the spec has it if code is missing."""
        task, training = self.spec.task, self.spec.training
        if self.spec.unresolved:
            return float(task.corruption)
        return task.corrupted_fraction(training.seed, training.seeding)

    def resolved(self) -> "RunResult":
        """The same with all code that its spec names imported: a stored run that uses a user's own comes without."""
        return replace(self, spec=self.spec.resolved())

    def module(self) -> "NetworkModule":
        """The trained network as a torch module, in evaluation mode."""
        return self.spec.resolved().model.module(self.trained_weights()).eval()

    def to_torch(self) -> "nn.Module":
        """The trained network as a plain torch module with named layers, which needs no grokscope where it is used."""
        spec = self.spec.resolved()
        return spec.model.to_torch(self.trained_weights(), spec.task)

    def trained_weights(self) -> Weights:
        """The weights of the final network, or an error that says how to get them."""
        if self.weights is None:
            run, file = self.run_id, f"{self.run_id[:6]}.toml"
            raise GrokscopeError(
                f"run {run} was stored without weights; to train it again with them: "
                f"grokscope runs export {run} --out {file} && grokscope train --spec {file} --save-weights"
            )
        return self.weights

    @property
    def snapshots(self) -> Mapping[int, Weights]:
        """The weights at measured steps, by step, or an error that says how to get them.

        result.snapshots[500]["U"]
        """
        if not self.weights_at:
            run, file = self.run_id, f"{self.run_id[:6]}.toml"
            raise GrokscopeError(
                f"run {run} has no snapshots; gs.run(spec, snapshots='all') keeps them, and for a run in a store: "
                f"grokscope runs export {run} --out {file} && grokscope train --spec {file} --snapshots all"
            )
        return self.weights_at

    def weights_before(self) -> Weights | None:
        """The weights before the first step, made again from the spec; None for a network that was not trained."""
        return None if self.engine == "analytic" else initial_state(self.spec.resolved()).weights

    def attention(self, pair: tuple[int, int]) -> npt.NDArray[np.float32]:
        """How a Transformer's heads divide their attention on a pair (m, n): [layers, heads, query, key]."""
        spec = self.spec.resolved()
        if not spec.model.has_attention:
            raise GrokscopeError(f"run {self.run_id} has no attention: model.kind = {spec.model.kind!r}")
        if not all(0 <= token < spec.task.inputs.vocabulary for token in pair):
            raise GrokscopeError(f"the pair {pair} is not allowed: m and n are 0 … {spec.task.inputs.vocabulary - 1}")
        return spec.model.attention(self.trained_weights(), pair)

    @property
    def outcome(self) -> str:
        """The name of its phase, or Diverged. Of a stopped run it is the phase at the step where it was stopped."""
        return self.phase.label if self.phase else "Diverged"

    def describe(self) -> str:
        """The phase and the numbers behind it, in plain words."""
        if self.phase is None:
            advice = self.spec.optimizer.advice_if_diverged()
            return f"Diverged: the loss at step {self.diverged_step} is not a finite number. {advice}"
        row = self.final
        corrupted = not math.isnan(row.corrupted_accuracy)
        stopped = f"Stopped at step {row.step} of {self.spec.training.steps}, so far: "
        settled = f"Settled at step {row.step} of {self.spec.training.steps}: "
        words = [
            f"{stopped if self.status == 'stopped' else settled if self.settled else ''}{self.phase.label}. "
            + describe_network(self.phase, row.test_accuracy, row.corrupted_accuracy, row.recovered_accuracy),
            f"After {row.step} steps it is right on {row.test_accuracy:.1%} of the test set "
            f"and agrees with {row.train_accuracy:.1%} of the training labels",
        ]
        if corrupted:
            words[-1] += (
                f"; of the corrupted examples it memorises {row.corrupted_accuracy:.1%} "
                f"and gives the true answer on {row.recovered_accuracy:.1%}"
            )
            if row.corrupted_accuracy + row.recovered_accuracy > 1:
                words[-1] += " (a label that was drawn anew can be the true one, and then counts as both)"
        words[-1] += "."
        if not corrupted and self.spec.task.corruption > 0 and not self.spec.unresolved:
            words.append(
                f"No label is corrupted: a fraction of {self.spec.task.corruption:g} of "
                f"{self.spec.task.training_size} training examples is none."
            )
        if row.dead_neurons:
            count = self.neurons.ipr.shape[1] if self.neurons is not None else self.spec.model.neuron_count
            words.append(f"{row.dead_neurons} of {count} neurons are dead.")
        return " ".join(words)

    def __repr__(self) -> str:
        if not self.curve:
            return f"<RunResult {self.run_id}: {self.outcome}>"
        row = self.final
        accuracies = f"train {row.train_accuracy:.3f}, test {row.test_accuracy:.3f}"
        stopped = " (stopped)" if self.status == "stopped" else " (settled)" if self.settled else ""
        return f"<RunResult {self.run_id}: {self.outcome}, {accuracies} after {row.step} steps{stopped}>"

    def plot(self) -> "Figure":
        """Its accuracies and the IPR histogram of its neurons, as `grokscope show` draws them."""
        from grokscope.plots import draw_runs

        return draw_runs(self)

    def _repr_html_(self) -> str:
        from grokscope.plots.inline import inline_image

        alt = f"Accuracies of run {self.run_id} during training, and the IPR of its neurons"
        return f"<p>Run {self.run_id}: {escape(self.describe())}</p>{inline_image(self.plot(), alt)}"

    def to_columns(self) -> dict[str, list[object]]:
        """The curve, column by column."""
        names = list(self.curve[0]) if self.curve else list(COLUMNS)
        return {name: [row[name] for row in self.curve] for name in names}

    def to_pandas(self) -> "pd.DataFrame":
        """The curve: one row for each measured step."""
        return data_frame(self.to_columns())

    def to_dict(self) -> dict[str, object]:
        """For JSON: everything but arrays; what does not exist is null."""
        return {
            "run_id": self.run_id,
            "phase": self.phase.value if self.phase else None,
            "status": self.status,
            "diverged_step": self.diverged_step,
            "engine": self.engine,
            "seconds": self.seconds,
            "spec": self.spec.model_dump(mode="json"),
            "final": row_to_dict(self.final) if self.curve else None,
            "curve": [row_to_dict(row) for row in self.curve],
        }


def analytic_result(modulus: int = 97, width: int = 500, seed: int = 0) -> RunResult:
    """The closed-form network of Equation 2 as if it had been trained in no time, on the default split and labels.

    >>> analytic_result(modulus=23, width=400).final.test_accuracy
    1.0
    """
    changed = {"task.modulus": modulus, "model.width": width, "training.steps": 1, "training.seed": seed}
    spec = RunSpec().updated(changed)
    weights = analytic_weights(modulus, width, seed)
    dataset = spec.dataset()
    row = Row({**measure_network(spec.model.module(weights), dataset), "step": 1})
    return RunResult(
        spec=spec,
        engine="analytic",
        seconds=0.0,
        status="finished",
        diverged_step=None,
        weights=weights,
        curve=(row,),
        neurons=neuron_spectra(spec.model, weights, spec.task),
        outputs=None,
        phase=classify(row.train_accuracy, row.test_accuracy, dataset.corruption, row.test_accuracy),
    )


@dataclass(frozen=True)
class Checkpoint:
    """A run under way: enough to go on exactly as if it had not been interrupted."""

    state: TrainingState
    curve: tuple[Row, ...]
    seconds: float  # that the run has taken so far
    engine: str  # another one would go on with other rounding
    ipr_history: npt.NDArray[np.unsignedinteger] | None = None  # as in a result
    weights_at: Mapping[int, Weights] = field(default_factory=dict)  # the snapshots so far, by step

    def has_snapshots(self, steps: Iterable[int]) -> bool:
        """Whether it has those of these steps that it is past: one that lacks some cannot be gone on from."""
        return all(step in self.weights_at for step in steps if step <= self.state.step)


def row_to_dict(row: Row) -> dict[str, float | int | None]:
    """A row of a curve for JSON, which has no NaN and no infinity."""
    return {key: value if math.isfinite(value) else None for key, value in row.items()}
