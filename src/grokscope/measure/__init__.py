"""Numbers from networks: accuracies and losses, Fourier spectra and IPR, norms."""

from grokscope.measure.ablation import Ablations, ablate
from grokscope.measure.curve import Measurement, measure_network, take_measurement
from grokscope.measure.events import TrainingEvents, training_events
from grokscope.measure.ledger import Ledger, LedgerRecorder
from grokscope.measure.spectrum import NeuronSpectra, neuron_spectra, output_spectra

__all__ = [
    "Ablations",
    "Ledger",
    "LedgerRecorder",
    "Measurement",
    "NeuronSpectra",
    "TrainingEvents",
    "ablate",
    "measure_network",
    "neuron_spectra",
    "output_spectra",
    "take_measurement",
    "training_events",
]
