"""What the page is told, as JSON: from the server, or written into a report.

Long lists are columns, one value for each cell, step or neuron, because thousands of small objects are slow to read.
None is what does not exist.
"""

from typing import Literal

from pydantic import BaseModel

Numbers = list[float | None]
Value = str | int | float | bool | None | list[int] | list[str]  # of a field of a spec


class PhaseLegend(BaseModel):
    """An outcome, and what it means in a sentence."""

    name: str
    label: str
    color: str
    words: str


class StoreView(BaseModel):
    """What the page shows around everything else."""

    name: str
    version: str  # of grokscope
    allow_train: bool
    report: bool  # a file, not a server
    outcomes: list[PhaseLegend]
    made_at: str  # UTC


class SweepSummary(BaseModel):
    """A sweep in the list of all."""

    name: str
    started_at: str
    axes: str  # in words: "17 data_fraction × 19 corruption × 4 weight_decay"
    cells: int
    done: int
    damaged: bool


class SweepList(BaseModel):
    """All sweeps, newest first."""

    sweeps: list[SweepSummary]


class RunSummary(BaseModel):
    """A run in the list of all."""

    run_id: str
    finished_at: str
    outcome: str | None
    words: str  # its settings in a line
    name: str | None = None
    tags: list[str] = []
    train_accuracy: float | None
    test_accuracy: float | None
    has_weights: bool
    damaged: bool


class RunList(BaseModel):
    """Some of all runs, newest first."""

    total: int
    offset: int
    runs: list[RunSummary]
    problem: str | None = None  # what is wrong with the search


class AxisView(BaseModel):
    """An axis of a diagram."""

    title: str
    fields: list[str]
    labels: list[str]
    numbers: list[float] | None  # true coordinates; None if the values are not numbers, or several fields


class PanelView(BaseModel):
    """One panel of a diagram: a value for each cell, row after row from the first, columns running fastest."""

    title: str
    fields: dict[str, Value]
    outcome: list[str | None]
    source: list[Literal["run", "recorded", "inferred", "failed", "missing"]]  # recorded: only in a table of cells
    counts: list[list[int]]  # [cells, outcomes], in the order of the legend
    train_accuracy: Numbers
    test_accuracy: Numbers
    run_ids: list[list[str]]  # of all seeds, run or not
    seeds: list[list[str | None]]  # their outcomes; also "failed", "running" and "damaged"


class DiagramView(BaseModel):
    """The phase diagram of a sweep."""

    name: str
    started_at: str
    refined: bool
    words: str
    columns: AxisView
    rows: AxisView | None
    seeds: int
    panels: list[PanelView]


class ColorView(BaseModel):
    """A quantity in every cell of a panel, the mean over its seeds."""

    values: Numbers
    left: int  # runs that have not been looked at yet; ask again


class EventView(BaseModel):
    """Something that happened in training, or in words why not."""

    name: str
    step: int | None
    words: str


class SpecView(BaseModel):
    """A spec to copy."""

    command: str
    toml: str
    python: str


class NeuronsView(BaseModel):
    """What the store keeps of all neurons of a run."""

    what: str  # what one calls them
    ipr: Numbers
    frequency: list[int | None]
    gini: Numbers
    norm: Numbers | None  # None without weights


class RunView(BaseModel):
    """A run: everything that needs no weights."""

    run_id: str
    state: Literal["finished", "diverged", "failed", "running", "damaged", "missing", "recorded"]
    phase: str | None = None
    words: str  # what happened, or what is the matter
    settings: str = ""
    name: str | None = None
    tags: list[str] = []
    note: str = ""
    finished_at: str | None = None
    seconds: float | None = None  # that training took, and will take again
    engine: str | None = None
    has_weights: bool = False
    own_code: list[str] = []
    spec: SpecView | None = None
    curve: dict[str, Numbers] = {}
    events: list[EventView] = []
    neurons: NeuronsView | None = None
    ipr_history: list[list[int]] = []  # [rows of the curve, bins from 0 to 1]; empty in runs of older releases
    traceback: str | None = None


class VectorView(BaseModel):
    """One vector of a neuron, over tokens or labels, and its spectrum."""

    name: str
    values: Numbers
    amplitude: Numbers
    phase: float | None  # at the strongest wave of the neuron


class NeuronView(BaseModel):
    """One neuron."""

    neuron: int
    ipr: float | None
    wave: str | None  # the frequency of its strongest wave
    frequency: list[str]  # of every wave
    residual: float | None  # how far its phases are from the relation of Equation 2
    vectors: list[VectorView]


class PhasesView(BaseModel):
    """The phases of all neurons at their strongest waves: in Equation 2 the input's make the output's."""

    relation: str  # what is 0 for a neuron of the analytic solution
    input_sum: Numbers  # of the phases of U and V, as the relation has it, in (−π, π]
    output: Numbers  # of W
    mean_residual: float | None  # of periodic neurons; π/2 would be chance
    periodic: int  # how many those are
    unavailable: str | None  # why there is nothing to compare


class OrderView(BaseModel):
    """The neurons in the order in which they are pruned, and what is left; each curve has one value more."""

    name: str
    label: str
    order: list[int]
    train_accuracy: Numbers
    test_accuracy: Numbers
    corrupted_accuracy: Numbers
    recovered_accuracy: Numbers


class PruningView(BaseModel):
    """A network pruned in every order."""

    orders: list[OrderView]
    unavailable: str | None  # why there are none


class ExampleView(BaseModel):
    """An example and the logits of all labels."""

    inputs: list[int]
    part: Literal["corrupted", "clean", "test"]
    label: int  # that it was trained on; the truth for a test example
    truth: int
    predicted: int
    logits: Numbers


class LogitsView(BaseModel):
    """Some corrupted examples, and how far the true label is ahead on all examples."""

    examples: list[ExampleView]
    symbols: list[int]  # how many there are at each position of an input
    edges: list[float]  # of the bars of the histograms
    margins: dict[str, list[int]]  # corrupted, clean and test: how many examples in each bar
    won: dict[str, float | None]  # the fraction with a margin above 0


class SuspectView(BaseModel):
    """A training label that the network finds suspicious."""

    inputs: list[int]
    label: int
    predicted: int
    truth: int
    score: float


class AuditView(BaseModel):
    """The most suspicious labels, and how well suspicion finds the wrong ones."""

    words: str
    ranked_by: str
    auroc: float | None
    wrong: int
    examples: int
    suspects: list[SuspectView]


class NetworkView(BaseModel):
    """What can be said of a network with its weights."""

    neurons: NeuronsView | None
    phases: PhasesView | None  # None if the task has no waves
    pruning: PruningView
    logits: LogitsView
    audit: AuditView


class Problem(BaseModel):
    """Why a request was not answered."""

    detail: str
