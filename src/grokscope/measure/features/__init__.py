"""Which neurons carry the rule, where there is no Fourier basis to tell."""
