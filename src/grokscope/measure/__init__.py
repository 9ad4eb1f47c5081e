"""Numbers from networks: accuracies and losses, Fourier spectra and IPR, norms."""

from grokscope.measure.audit import Audit, audit_labels
from grokscope.measure.curve import Measurement, measure_network, take_measurement
from grokscope.measure.logits import LogitTable, logits_of, measure_logits
from grokscope.measure.spectrum import NeuronSpectra, neuron_spectra, output_spectra
from grokscope.measure.waves import NeuronWaves, WaveSummary, neuron_waves, output_waves, why_no_relation

__all__ = [
    "Audit",
    "LogitTable",
    "Measurement",
    "NeuronSpectra",
    "NeuronWaves",
    "WaveSummary",
    "audit_labels",
    "logits_of",
    "measure_logits",
    "measure_network",
    "neuron_spectra",
    "neuron_waves",
    "output_spectra",
    "output_waves",
    "take_measurement",
    "why_no_relation",
]
