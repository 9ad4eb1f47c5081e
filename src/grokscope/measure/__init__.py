"""Numbers from networks: accuracies and losses, Fourier spectra and IPR, norms."""

from grokscope.measure.curve import Measurement, measure_network, take_measurement
from grokscope.measure.pruning import (
    BAND,
    ORDERS,
    Pruning,
    PruningCurve,
    measure_pruning,
    pruning_curves,
    pruning_orders,
)
from grokscope.measure.spectrum import NeuronSpectra, neuron_spectra, output_spectra

__all__ = [
    "BAND",
    "ORDERS",
    "Measurement",
    "NeuronSpectra",
    "Pruning",
    "PruningCurve",
    "measure_network",
    "measure_pruning",
    "neuron_spectra",
    "output_spectra",
    "pruning_curves",
    "pruning_orders",
    "take_measurement",
]
