"""A figure of your own, from one file: `grokscope figure my_figure.py`."""

from dataclasses import replace

from grokscope.errors import GrokscopeError
from grokscope.experiments.experiment import Experiment
from grokscope.extension import load_module

_EXPECTED = "EXPERIMENT, a grokscope.experiments.Experiment"


def is_file(name: str) -> bool:
    """Whether a name means a file, and not a figure that is in the catalogue.

    >>> is_file("my_figure.py"), is_file("fig01")
    (True, False)
    """
    return name.endswith(".py")


def experiment_from(path: str) -> Experiment:
    """The EXPERIMENT that a file defines."""
    module = load_module(path)
    if not hasattr(module, "EXPERIMENT"):
        raise GrokscopeError(f"{path} must define {_EXPECTED}; it defines no EXPERIMENT")
    found = module.EXPERIMENT
    if not isinstance(found, Experiment):
        raise GrokscopeError(f"{path} must define {_EXPECTED}; its EXPERIMENT is of type {type(found).__name__}")
    if found.draw is None:
        raise GrokscopeError(f"{path} must define {_EXPECTED}; its EXPERIMENT has no draw function")
    return replace(found, file=path, claims=tuple(replace(claim, file=path) for claim in found.claims))
