"""The native kernel. Everything else about the package is in pyproject.toml.

The extension is optional: without a C++ compiler the package installs all the same and trains with torch.
"""

import os
from pathlib import Path

from pybind11.setup_helpers import ParallelCompile, Pybind11Extension
from setuptools import setup

ParallelCompile(default=0).install()  # one job per core

# level_plain comes first: of the standard library's inline functions, which every level compiles, the linker keeps the
# first copy, and only this one runs on every CPU.
SOURCES = ["level_plain.cpp", "module.cpp", "memory.cpp", "level_split.cpp", "level_avx2.cpp", "level_avx512.cpp"]

# No -ffast-math: a level gives the same results on every machine. Without errno and traps, square roots vectorise.
# Of the vectors of level_split.cpp compilers say that their ABI changed once: they are passed within that file only.
FLAGS = ["-O3", "-falign-loops=32", "-fno-math-errno", "-fno-trapping-math", "-Wall", "-Wextra", "-Wno-psabi"]
# `make sanitize` watches every access and every operation of the kernel.
WATCHED = ["-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover", "-g"]
SANITIZE = WATCHED if os.environ.get("SANITIZE") else []

setup(
    ext_modules=[
        Pybind11Extension(
            "grokscope._native",
            [f"native/{name}" for name in SOURCES],
            depends=sorted(str(header) for header in Path("native").glob("*.hpp")),
            cxx_std=17,
            extra_compile_args=FLAGS + SANITIZE,
            extra_link_args=SANITIZE,
            optional=True,
        )
    ]
)
