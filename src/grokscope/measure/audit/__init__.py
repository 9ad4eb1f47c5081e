"""Which training labels a network finds suspicious."""
