"""Numbers from networks: accuracies and losses, Fourier spectra and IPR, norms."""

from grokscope.measure.audit import Audit, audit_labels
from grokscope.measure.curve import Measurement, measure_network, take_measurement
from grokscope.measure.spectrum import NeuronSpectra, neuron_spectra, output_spectra

__all__ = [
    "Audit",
    "Measurement",
    "NeuronSpectra",
    "audit_labels",
    "measure_network",
    "neuron_spectra",
    "output_spectra",
    "take_measurement",
]
