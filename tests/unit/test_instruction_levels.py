"""A level that computes something else than the plain one does is not used, whatever the CPU says about itself."""

import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from grokscope import EngineError, RunSpec, run
from grokscope.compiled import agrees_with_plain, instruction_level, native_module

kernel = native_module()
assert kernel is not None


def test_every_level_of_this_cpu_agrees(level: str) -> None:
    assert kernel is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert instruction_level() == level
    assert agrees_with_plain(kernel, level)


class Wrong:
    """A trainer that is off by a little at one level."""

    error = 1.001

    def __init__(self, level: str, **fields: Any) -> None:
        assert kernel is not None
        self.wrong = level == "broken"
        self.trainer = kernel.Trainer(level="plain", **fields)

    def advance(self, steps: int) -> Any:
        return self.trainer.advance(steps)

    def set(self, kind: str, name: str, array: Any) -> None:
        self.trainer.set(kind, name, array)

    def get(self, kind: str, name: str) -> Any:
        array = self.trainer.get(kind, name)
        if self.wrong and name in ("W", "mlp_out1"):
            array[0] = array[0] * self.error if np.isfinite(self.error) else self.error
        return array


def broken_kernel(error: float) -> Any:
    fake = ModuleType("fake")
    trainer = type("Broken", (Wrong,), {"error": error})
    vars(fake).update(Trainer=trainer, available_levels=lambda: ["plain", "broken"])
    return fake


@pytest.mark.parametrize("error", [1.001, 0.5, float("nan"), float("inf")])
def test_a_level_that_disagrees_is_seen(error: float) -> None:
    assert not agrees_with_plain(broken_kernel(error), "broken")


def test_it_falls_back_with_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = broken_kernel(0.5)
    monkeypatch.setattr("grokscope.compiled.native_module", lambda: fake)
    monkeypatch.delenv("GROKSCOPE_ISA", raising=False)
    with pytest.warns(RuntimeWarning, match="'broken' computes something else than 'plain'") as caught:
        assert [instruction_level() for _ in range(3)] == ["plain"] * 3
    assert len(caught) == 1


def test_a_level_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROKSCOPE_ISA", "avx3")
    with pytest.raises(EngineError, match="GROKSCOPE_ISA = 'avx3' is not allowed: this CPU has plain"):
        run(RunSpec(), engine="native")


def test_the_fastest_comes_last() -> None:
    assert kernel is not None
    levels = kernel.available_levels()
    assert levels[0] == "plain"
    assert levels[-1] != "split"  # which is for tests
    assert levels == [name for name in ("plain", "split", "avx2", "avx512") if name in levels]
