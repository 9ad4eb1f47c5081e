"""Every public name. `import grokscope` itself loads none of them; the first use of one loads this module.

A new name is added here, to the imports and to `__all__`.
"""

from grokscope.animation import animate
from grokscope.cluster import ClusterError
from grokscope.errors import EngineError, GrokscopeError, SpecError, StoreError
from grokscope.experiments import Drawing, Findings
from grokscope.experiments.reproduction import Reproduction, claims, figure, reproduce
from grokscope.exports import StoreView, SweepView
from grokscope.exports import open_store as open  # noqa: A004 (as in gzip and codecs)
from grokscope.extension import ExtensionError
from grokscope.measure import (
    Ablations,
    Audit,
    Ledger,
    LedgerRecorder,
    LogitTable,
    Measurement,
    Moment,
    NeuronSpectra,
    NeuronWaves,
    Pruning,
    PruningCurve,
    Row,
    TrainingEvents,
    ablate,
    audit_labels,
    logits_of,
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
from grokscope.models import (
    MLP,
    HiddenLayer,
    Loss,
    Network,
    Neurons,
    Transformer,
    analytic_weights,
    idle_norm,
    initial_weights,
    pruned,
)
from grokscope.optimizers import SGD, Adam, AdamW, Optimizer
from grokscope.phases import Phase, classify
from grokscope.randomness import Stream, integers, normal
from grokscope.regularizers import Regularizer
from grokscope.result import RunResult
from grokscope.spec import ModelSpec, OptimizerSpec, RegularizerSpec, RunSpec, TaskSpec, TrainingSpec
from grokscope.store import Store
from grokscope.sweeping import run, sweep, train
from grokscope.sweeps.audits import SweepAudit, audit_sweep
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.diagram import PhaseDiagram, phase_diagram
from grokscope.sweeps.plan import Plan
from grokscope.tasks import Corruption, Dataset, Examples, ModularTask, Task, make_dataset
from grokscope.training import Stop
from grokscope.waves import Waves

__all__ = [
    "MLP",
    "SGD",
    "Ablations",
    "Adam",
    "AdamW",
    "Audit",
    "Axis",
    "ClusterError",
    "Corruption",
    "Dataset",
    "Drawing",
    "EngineError",
    "Examples",
    "ExtensionError",
    "Findings",
    "GrokscopeError",
    "HiddenLayer",
    "Ledger",
    "LedgerRecorder",
    "LogitTable",
    "Loss",
    "Measurement",
    "ModelSpec",
    "ModularTask",
    "Moment",
    "Network",
    "NeuronSpectra",
    "NeuronWaves",
    "Neurons",
    "Optimizer",
    "OptimizerSpec",
    "Phase",
    "PhaseDiagram",
    "Plan",
    "Pruning",
    "PruningCurve",
    "Regularizer",
    "RegularizerSpec",
    "Reproduction",
    "Row",
    "RunResult",
    "RunSpec",
    "SpecError",
    "Stop",
    "Store",
    "StoreError",
    "StoreView",
    "Stream",
    "SweepAudit",
    "SweepView",
    "Task",
    "TaskSpec",
    "TrainingEvents",
    "TrainingSpec",
    "Transformer",
    "Waves",
    "ablate",
    "analytic_weights",
    "animate",
    "audit_labels",
    "audit_sweep",
    "claims",
    "classify",
    "figure",
    "idle_norm",
    "initial_weights",
    "integers",
    "logits_of",
    "make_dataset",
    "measure_logits",
    "measure_network",
    "measure_pruning",
    "neuron_spectra",
    "neuron_waves",
    "normal",
    "open",
    "output_waves",
    "phase_diagram",
    "pruned",
    "pruning_curves",
    "pruning_orders",
    "reproduce",
    "run",
    "sweep",
    "train",
    "training_events",
]
