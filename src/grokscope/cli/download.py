"""`grokscope download`: MNIST, for those who have the internet."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from grokscope.cli.options import note
from grokscope.images import data_directory, read_images
from grokscope.notes import shows_bars


def download(
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", help="The directory to write to; if left out, ./mnist.", show_default=False),
    ] = None,
    mirror: Annotated[
        str | None, typer.Option("--mirror", metavar="URL", help="Another place to get them from.", show_default=False)
    ] = None,
) -> None:
    """Download MNIST (12 MB) as compressed IDX files, and check them.

    Files that are there are kept, and one that was begun is continued. Ctrl-C is safe.

    [bold]Example[/bold]

    grokscope download --data-dir mnist
    """
    from grokscope.images.download import MIRROR, download_mnist

    directory = data_dir or data_directory()
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not shows_bars()) as bar:
        tasks: dict[str, object] = {}

        def on_progress(name: str, done: int, size: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name)
                if bar.disable:
                    note(f"Getting {name}")
            bar.update(tasks[name], completed=done, total=size)  # type: ignore[arg-type]

        download_mnist(directory, mirror=mirror or MIRROR, on_progress=on_progress)
    files = read_images(directory)
    typer.echo(
        f"MNIST is in {directory}: {len(files.train_images)} images to train on, {len(files.test_images)} to test on."
    )
