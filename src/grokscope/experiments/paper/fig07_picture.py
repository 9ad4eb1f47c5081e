"""Draws Figure 7: the phase diagrams of a network, and beside them the IPR of single ones."""

from collections.abc import Sequence
from dataclasses import dataclass

from grokscope.experiments import tables
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing
from grokscope.plots import draw_phase_diagrams
from grokscope.result import RunResult
from grokscope.spec import RunSpec
from grokscope.sweeps.plan import Plan


@dataclass(frozen=True)
class Row:
    """A row of the figure."""

    label: str
    diagram: Plan
    networks: tuple[RunSpec, ...]  # of the histograms


def needs_of(rows: Sequence[Row]) -> Needs:
    """The diagrams and the networks of some rows."""
    networks = tuple(spec for row in rows for spec in row.networks)
    return Needs(networks=networks, diagrams=tuple(row.diagram for row in rows))


def draw_rows(evidence: Evidence, rows: Sequence[Row]) -> Drawing:
    """One row below the other."""
    diagrams = [evidence.diagram(row.diagram) for row in rows]
    beside = [{_title(result): result for result in evidence.networks(row.networks)} for row in rows]
    named = {f"{result.spec.model.kind} {title}": result for row in beside for title, result in row.items()}
    cells = {row.diagram.name: diagram.to_columns() for row, diagram in zip(rows, diagrams, strict=True)}
    labels = [row.label for row in rows]
    picture = draw_phase_diagrams(diagrams, labels, beside, outline="before")
    return Drawing(picture, tables.stacked(**cells, neurons=tables.neurons(named)))


def _title(result: RunResult) -> str:
    spec = result.spec
    rated = spec.has("model.module_rates") and spec.value_of("model.module_rates")
    rates = "a rate for each module\n" if rated else ""
    return f"weight decay {spec.optimizer.weight_decay:g}\n{rates}{result.outcome}"
