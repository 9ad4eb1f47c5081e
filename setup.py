"""The native kernel. Everything else about the package is in pyproject.toml.

The extension is optional: without a C++ compiler the package installs all the same and trains with torch.
"""

from pybind11.setup_helpers import Pybind11Extension
from setuptools import setup

# level_plain comes first: of the standard library's inline functions, which every level compiles, the linker keeps the
# first copy, and only this one runs on every CPU.
SOURCES = ["level_plain.cpp", "module.cpp", "level_avx2.cpp", "level_avx512.cpp"]
HEADERS = ["trainer.hpp", "level_includes.hpp", "kernel.hpp", "matmul.hpp", "philox.hpp", "full_grid.hpp"]

setup(
    ext_modules=[
        Pybind11Extension(
            "grokscope._native",
            [f"native/{name}" for name in SOURCES],
            depends=[f"native/{name}" for name in HEADERS],
            cxx_std=17,
            # No -ffast-math: results are the same on every machine of a level. Without errno and traps √ vectorises.
            extra_compile_args=["-O3", "-fno-math-errno", "-fno-trapping-math", "-Wall", "-Wextra"],
            optional=True,
        )
    ]
)
