"""The compiled kernel, see native/module.cpp."""

from typing import Literal

import numpy as np
import numpy.typing as npt

def available_levels() -> list[str]: ...
def fma_peak(level: str, seconds: float) -> float: ...
def evaluate_prefixes(
    level: str,
    hidden: npt.NDArray[np.float32],
    output: npt.NDArray[np.float32],
    order: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int64],
    loss: str,
    scale: npt.NDArray[np.float32] | None = None,
    shift: npt.NDArray[np.float32] | None = None,
) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.float32]]: ...

class Trainer:
    def __init__(
        self,
        *,
        level: str,
        modulus: int,
        width: int,
        depth: int,
        activation: str,
        loss: str,
        norm: str,
        optimizer: str,
        form: Literal["automatic", "direct", "complement", "tokens"],
        batch_size: int,
        dropout_threshold: int,
        dropout_scale: float,
        learning_rate: float,
        weight_decay: float,
        beta1: float,
        beta2: float,
        epsilon: float,
        momentum: float,
        seed: int,
        pairs: npt.NDArray[np.int64],
        labels: npt.NDArray[np.int64],
    ) -> None: ...
    step: int
    @property
    def uses_complement(self) -> bool: ...
    def advance(self, steps: int) -> npt.NDArray[np.float64]: ...
    def gradient(self) -> float: ...
    def evaluate(
        self, pairs: npt.NDArray[np.int64], labels: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]: ...
    def get(self, kind: str, name: str) -> npt.NDArray[np.float32]: ...
    def set(self, kind: str, name: str, array: npt.NDArray[np.float32]) -> None: ...
