"""What a wave is: the basis in which the weights of a neuron are looked at."""

from grokscope.waves.orders import distinct_waves, logarithmic_order
from grokscope.waves.waves import Basis, Waves, wave_frequencies

__all__ = ["Basis", "Waves", "distinct_waves", "logarithmic_order", "wave_frequencies"]
