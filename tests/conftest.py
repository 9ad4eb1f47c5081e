"""Specs small enough for a test and large enough to show something."""

import os
import signal

import pytest
from hypothesis import settings

from grokscope import ModelSpec, RunSpec, TaskSpec, TrainingSpec
from grokscope.engines.native_engine import native_module

# Examples are drawn the same way every time, and no example fails for being slow on a busy machine.
settings.register_profile("grokscope", deadline=None, derandomize=True, database=None)
settings.load_profile("grokscope")

# pytest-xdist gives each worker a core; more threads than that only slow each other down.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell starts what runs in its background deaf to Ctrl-C, and nohup makes it deaf to a closed terminal; so would be
# the processes that tests send these signals to.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def tiny() -> RunSpec:
    """Trains in a fraction of a second."""
    return RunSpec(
        task=TaskSpec(modulus=11),
        model=ModelSpec(width=24),
        training=TrainingSpec(steps=30, measure_every=10),
    )


kernel = native_module()


@pytest.fixture(params=kernel.available_levels() if kernel else [])
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every instruction level of the kernel that this CPU has."""
    monkeypatch.setenv("GROKSCOPE_ISA", request.param)
    return str(request.param)
