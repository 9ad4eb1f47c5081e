"""Progress of work that can be counted.

with counted("Auditing fig3a") as (on_run,):
    on_run(1, 300)
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from grokscope.cli.options import note
from grokscope.notes import shows_bars

_LOG_LINES = 10  # without a terminal

OnItem = Callable[[int, int], None]  # how many are done, and of how many


@contextmanager
def counted(*doing: str) -> Iterator[list[OnItem]]:
    """Progress on standard error, for each kind of work: a bar in a terminal, a line now and then in a log."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not shows_bars()) as bar:
        yield [_on_item(bar, words) for words in doing]


def _on_item(bar: Progress, words: str) -> OnItem:
    task = bar.add_task(words, visible=False)

    def on_item(done: int, total: int) -> None:
        if not bar.disable:
            bar.update(task, completed=done, total=total, visible=True)
        elif _LOG_LINES * done // total > _LOG_LINES * (done - 1) // total:
            note(f"{words}: {done} of {total}")

    return on_item
