"""grokscope: how networks memorise and generalise at the same time.

>>> import grokscope as gs
>>> result = gs.run(gs.RunSpec(task=gs.TaskSpec(modulus=11), model=gs.ModelSpec(width=32)))
>>> result.weights["U"].shape
(32, 11)
"""

from grokscope.errors import EngineError, GrokscopeError, SpecError, StoreError
from grokscope.experiments import Drawing, Findings
from grokscope.experiments.reproduction import Reproduction, claims, figure, reproduce
from grokscope.measure import (
    Ablations,
    Audit,
    Ledger,
    LedgerRecorder,
    LogitTable,
    Measurement,
    NeuronSpectra,
    NeuronWaves,
    Pruning,
    PruningCurve,
    TrainingEvents,
    ablate,
    audit_labels,
    measure_logits,
    measure_network,
    measure_pruning,
    neuron_spectra,
    neuron_waves,
    output_waves,
    pruning_curves,
    pruning_orders,
    training_events,
)
from grokscope.models import analytic_weights, initial_weights, pruned
from grokscope.phases import Phase, classify
from grokscope.result import RunResult
from grokscope.run import execute as run
from grokscope.spec import ModelSpec, OptimizerSpec, RunSpec, TaskSpec, TrainingSpec
from grokscope.store import Store
from grokscope.sweep.audits import SweepAudit, audit_sweep
from grokscope.tasks import Dataset, make_dataset

__version__ = "0.1.0"

__all__ = [
    "Ablations",
    "Audit",
    "Dataset",
    "Drawing",
    "EngineError",
    "Findings",
    "GrokscopeError",
    "Ledger",
    "LedgerRecorder",
    "LogitTable",
    "Measurement",
    "ModelSpec",
    "NeuronSpectra",
    "NeuronWaves",
    "OptimizerSpec",
    "Phase",
    "Pruning",
    "PruningCurve",
    "Reproduction",
    "RunResult",
    "RunSpec",
    "SpecError",
    "Store",
    "StoreError",
    "SweepAudit",
    "TaskSpec",
    "TrainingEvents",
    "TrainingSpec",
    "ablate",
    "analytic_weights",
    "audit_labels",
    "audit_sweep",
    "claims",
    "classify",
    "figure",
    "initial_weights",
    "make_dataset",
    "measure_logits",
    "measure_network",
    "measure_pruning",
    "neuron_spectra",
    "neuron_waves",
    "output_waves",
    "pruned",
    "pruning_curves",
    "pruning_orders",
    "reproduce",
    "run",
    "training_events",
]
