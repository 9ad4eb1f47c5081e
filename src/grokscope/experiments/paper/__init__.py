"""The figures and tables of the paper, and its theory."""
