"""The compiled kernel: whether it is there, and which of its instruction levels runs."""

import os
import platform
import warnings
from functools import cache
from types import ModuleType
from typing import Any

from grokscope.errors import EngineError, did_you_mean

LEVEL_VARIABLE = "GROKSCOPE_ISA"
FOR_TESTS = "split"  # the tiles of AVX-512 in instructions of AVX2


def native_module() -> ModuleType | None:
    """The compiled kernel, or None where the package was installed without a C++ compiler."""
    try:
        from grokscope import _native
    except ImportError:
        return None
    return _native


def instruction_level() -> str:
    """The fastest that this CPU has, or the one that the environment variable GROKSCOPE_ISA names.

    Its first use in a process checks that it computes what the plain level does. One that does not is not used.
    """
    kernel = native_module()
    levels: list[str] = kernel.available_levels() if kernel else []
    chosen = os.environ.get(LEVEL_VARIABLE) or levels[-1]
    if chosen not in levels:
        raise EngineError(
            f"{LEVEL_VARIABLE} = {chosen!r} is not allowed: this CPU has {', '.join(levels)}"
            f"{did_you_mean(chosen, levels)}"
        )
    assert kernel is not None
    return _trusted_level(kernel, chosen)


@cache
def _trusted_level(kernel: ModuleType, level: str) -> str:
    """This level, or the next slower one that computes what the plain level does."""
    if level == "plain" or agrees_with_plain(kernel, level):
        return level
    levels = [each for each in kernel.available_levels() if each != FOR_TESTS]
    slower = levels[levels.index(level) - 1] if level in levels else "plain"
    warnings.warn(
        f"the kernel's instruction level {level!r} computes something else than 'plain' on this machine, so {slower!r} "
        "runs instead, more slowly; please report it with the model of the CPU",
        RuntimeWarning,
        stacklevel=3,
    )
    return _trusted_level(kernel, slower)


def agrees_with_plain(kernel: ModuleType, level: str) -> bool:
    """Whether some steps of small networks give what the plain level gives, up to rounding. It takes milliseconds."""
    import numpy as np

    common = {
        "modulus": 11, "loss": "cross-entropy", "optimizer": "sgd", "form": "automatic", "batch_size": 0,
        "dropout_threshold": 6000, "dropout_scale": 1.1, "learning_rate": 0.01, "weight_decay": 0.1, "beta1": 0.9,
        "beta2": 0.98, "epsilon": 1e-8, "momentum": 0.9, "seed": 0,
        "pairs": np.stack(np.divmod(np.arange(121), 11), axis=1), "labels": np.arange(121) * 7 % 11,
    }  # fmt: skip
    mlp = {"width": 53, "depth": 2, "activation": "quadratic", "norm": "none"}
    transformer = {
        "network": "transformer", "width": 36, "layers": 1, "heads": 3, "mlp_width": 144, "tied": False,
        "decay_embeddings": True, "score_divisor": 12.0, "logit_divisor": 36.0,
        "attention_rate": 0.5, "mlp_in_rate": 0.25, "mlp_out_rate": 0.125, "other_rate": 1.0,
        "activation": "relu", "norm": "layer",
    }  # fmt: skip
    networks: list[tuple[dict[str, Any], list[str]]] = [
        (mlp, ["U", "V", "W"]),
        (mlp | {"loss": "mse", "dropout_threshold": 0}, ["U", "V", "W"]),  # over the full grid
        (mlp | {"depth": 3, "activation": "relu"}, ["U", "V", "W", "H2"]),
        (transformer, ["embedding", "query1", "key1", "value1", "output1", "mlp_in1", "mlp_out1", "unembedding"]),
    ]
    for fields, names in networks:
        found = []
        for each in ("plain", level):
            trainer = kernel.Trainer(level=each, **common | fields)
            for number, name in enumerate(names):
                shape = trainer.get("weights", name).shape
                values = np.sin(np.arange(shape[0] * shape[1]) * (number + 1.7)).reshape(shape)
                trainer.set("weights", name, (0.3 * values).astype(np.float32))
            losses = trainer.advance(3)
            found.append([losses, *(trainer.get("weights", name) for name in names)])
        for expected, said in zip(*found, strict=True):
            # What is not finite does not agree either.
            if not np.isfinite(said).all() or np.abs(said - expected).max() > 1e-4 * np.abs(expected).max():
                return False
    return True


def compiled_levels() -> list[str]:
    """The instruction levels that a kernel for this kind of processor is compiled for, the fastest last."""
    return ["plain", "avx2", "avx512"] if platform.machine().lower() in ("x86_64", "amd64") else ["plain"]
