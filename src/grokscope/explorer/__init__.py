"""The explorer: a page in the browser with all sweeps, phase diagrams and networks of a store."""
