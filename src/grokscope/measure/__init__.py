"""Numbers from networks: accuracies and losses, Fourier spectra and IPR, norms."""

from grokscope.measure.ablation.ablation import Ablations, ablate
from grokscope.measure.audit.audit import Audit, audit_labels
from grokscope.measure.curve import measure_network
from grokscope.measure.events import TrainingEvents, phases_along, training_events
from grokscope.measure.ledger import Ledger, LedgerRecorder
from grokscope.measure.logits import LogitTable, logits_of, measure_logits
from grokscope.measure.measurement import (
    BUILT_IN,
    COLUMNS,
    WHOLE_NUMBERS,
    Measurement,
    Moment,
    Row,
    measurements_called,
    take_row,
)
from grokscope.measure.pruning.curves import (
    BAND,
    ORDERS,
    Pruning,
    PruningCurve,
    measure_pruning,
    pruning_curves,
    pruning_orders,
    random_order,
)
from grokscope.measure.spectra.spectrum import IPR_BINS, NeuronSpectra, neuron_spectra, output_spectra
from grokscope.measure.spectra.waves import NeuronWaves, WaveSummary, neuron_waves, output_waves, why_no_relation

__all__ = [
    "BAND",
    "BUILT_IN",
    "COLUMNS",
    "IPR_BINS",
    "ORDERS",
    "WHOLE_NUMBERS",
    "Ablations",
    "Audit",
    "Ledger",
    "LedgerRecorder",
    "LogitTable",
    "Measurement",
    "Moment",
    "NeuronSpectra",
    "NeuronWaves",
    "Pruning",
    "PruningCurve",
    "Row",
    "TrainingEvents",
    "WaveSummary",
    "ablate",
    "audit_labels",
    "logits_of",
    "measure_logits",
    "measure_network",
    "measure_pruning",
    "measurements_called",
    "neuron_spectra",
    "neuron_waves",
    "output_spectra",
    "output_waves",
    "phases_along",
    "pruning_curves",
    "pruning_orders",
    "random_order",
    "take_row",
    "training_events",
    "why_no_relation",
]
