"""Networks whose weights are only waves, or have lost some."""
