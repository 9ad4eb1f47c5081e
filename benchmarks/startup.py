"""`python -m benchmarks.startup`: the processor time before a command does anything.

Processor time (user and system) of whole processes, the least of several: other work on the machine changes it less
than the time on the clock, and never to the better. `import numpy` is there for comparison.
"""

import json
import resource
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from grokscope.outputs import write_text

ROUNDS = 9
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import grokscope": ["-c", "import grokscope"],
    "import grokscope, and use a name": ["-c", "import grokscope; grokscope.RunSpec"],
    "grokscope --version": ["-m", "grokscope", "--version"],
    "grokscope --help": ["-m", "grokscope", "--help"],
    "grokscope train --help": ["-m", "grokscope", "train", "--help"],
}
AIMS = {"import grokscope, and use a name": 0.5, "grokscope --help": 0.3}  # seconds, on an idle machine


def seconds_of(arguments: list[str]) -> float:
    """The processor time of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure in turns, print and write benchmarks/startup.json."""
    samples: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        for name, arguments in COMMANDS.items():
            samples[name].append(seconds_of(arguments))
    table = Table("what", "least s", "most s", "aim", box=None)
    for name, values in samples.items():
        table.add_row(name, f"{min(values):.2f}", f"{max(values):.2f}", f"{AIMS[name]:g}" if name in AIMS else "")
    Console().print(table)
    write_text(Path("benchmarks/startup.json"), json.dumps(samples, indent=1) + "\n")


if __name__ == "__main__":
    main()
