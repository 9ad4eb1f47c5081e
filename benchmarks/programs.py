"""Programs in processes of their own, so that they do not share threads, allocators or the state of the FPU."""

import importlib
import multiprocessing
import time
from multiprocessing.connection import Connection

from grokscope import RunSpec

_PROGRAMS = {
    "eager": ("benchmarks.eager", "EagerProgram"),
    "jax": ("benchmarks.jax_program", "JaxProgram"),
    "grokscope": ("benchmarks.engine", "EngineProgram"),
    "whole run": ("benchmarks.engine", "WholeRun"),
    "peak": ("benchmarks.engine", "FmaPeak"),
    "memory": ("benchmarks.engine", "Memory"),
}


class Program:
    """`copies` processes that run the same program side by side, as many as use the machine."""

    def __init__(self, name: str, spec: RunSpec, copies: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Connection] = []
        self._processes = []
        for _ in range(copies):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, name, spec), daemon=True)
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)
        for pipe in self._pipes:
            pipe.recv()  # ready

    def seconds_of(self, steps: int) -> list[float]:
        """How long each copy takes for so many steps, all at once."""
        start = time.time() + 0.02
        for pipe in self._pipes:
            pipe.send((start, steps))
        return [pipe.recv() for pipe in self._pipes]

    def steps_per_second(self, steps: int) -> float:
        """Of the whole machine."""
        return sum(steps / seconds for seconds in self.seconds_of(steps))

    def close(self) -> None:
        """End the processes."""
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join()


def _serve(pipe: Connection, name: str, spec: RunSpec) -> None:
    module, attribute = _PROGRAMS[name]
    program = getattr(importlib.import_module(module), attribute)(spec)
    if name != "memory":
        program.seconds_of(2)
    pipe.send("ready")
    while (message := pipe.recv()) is not None:
        start, steps = message
        time.sleep(max(0.0, start - time.time()))
        pipe.send(program.seconds_of(steps))
