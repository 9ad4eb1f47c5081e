"""grokscope: how networks memorise and generalise at the same time.

>>> import grokscope as gs
>>> result = gs.run(gs.RunSpec(task=gs.TaskSpec(modulus=11), model=gs.ModelSpec(width=32)))
>>> result.weights["U"].shape
(32, 11)
"""

from grokscope.errors import EngineError, GrokscopeError, SpecError, StoreError
from grokscope.measure import (
    Ablations,
    Ledger,
    LedgerRecorder,
    Measurement,
    NeuronSpectra,
    TrainingEvents,
    ablate,
    measure_network,
    neuron_spectra,
    training_events,
)
from grokscope.models import analytic_weights, initial_weights, pruned
from grokscope.phases import Phase, classify
from grokscope.result import RunResult
from grokscope.run import execute as run
from grokscope.spec import ModelSpec, OptimizerSpec, RunSpec, TaskSpec, TrainingSpec
from grokscope.store import Store
from grokscope.tasks import Dataset, make_dataset

__version__ = "0.1.0"

__all__ = [
    "Ablations",
    "Dataset",
    "EngineError",
    "GrokscopeError",
    "Ledger",
    "LedgerRecorder",
    "Measurement",
    "ModelSpec",
    "NeuronSpectra",
    "OptimizerSpec",
    "Phase",
    "RunResult",
    "RunSpec",
    "SpecError",
    "Store",
    "StoreError",
    "TaskSpec",
    "TrainingEvents",
    "TrainingSpec",
    "ablate",
    "analytic_weights",
    "classify",
    "initial_weights",
    "make_dataset",
    "measure_network",
    "neuron_spectra",
    "pruned",
    "run",
    "training_events",
]
