"""`grokscope runs export`: runs for other programs."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from grokscope.cli.choosing import SweepOption, WhereOption
from grokscope.cli.completion import offered_runs
from grokscope.cli.counting import counted
from grokscope.cli.options import DEFAULT_STORE, StoreOption, note
from grokscope.errors import GrokscopeError, did_you_mean, quoted
from grokscope.exports import (
    TABLES,
    StreamedTable,
    SweepView,
    print_csv,
    run_dataset,
    runs_dataset,
    sweep_dataset,
    write_csv,
    write_netcdf,
    write_parquet,
)
from grokscope.outputs import check_writable, write_file
from grokscope.store import Store
from grokscope.store.contents import pack_run
from grokscope.sweeps.diagram import find_sweep
from grokscope.tables import optional_module

MANY = 200  # runs, from which on an export shows its progress

_ENDINGS = {
    "json": ".json",
    "toml": ".toml",
    "safetensors": ".safetensors",
    "csv": ".csv",
    "parquet": ".parquet",
    "netcdf": ".nc",
}
_OF_ONE_RUN = ("json", "toml", "safetensors")
_LIBRARIES = {"parquet": ("pyarrow",), "netcdf": ("xarray", "h5netcdf", "h5py")}


def export_runs(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN",
            help="A run id, the beginning of one, or a name.",
            show_default=False,
            autocompletion=offered_runs,
        ),
    ] = None,
    sweep: SweepOption = None,
    where: WhereOption = None,
    everything: Annotated[bool, typer.Option("--all", help="All runs of the store.")] = False,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="csv, parquet or netcdf; of one run also json (all but arrays), toml (the spec) or safetensors (all "
            "arrays, with the weights).",
            show_default="what --out ends in; on standard output json of one run, csv of many",
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="What csv and parquet have a row for: runs, curves (measured steps) or neurons.",
            show_default="curves of one run, runs of many",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file.", show_default="standard output")] = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Write one run, a sweep or all runs in a format that other programs read.

    A sweep as netCDF is a Dataset of xarray over the axes of the sweep. Parquet and netCDF need
    pip install 'grokscope\\[export]'. See docs/exports.md.

    [bold]Examples[/bold]

    grokscope runs export 41630c --out curve.csv

    grokscope runs export 41630c --out network.safetensors

    grokscope runs export --sweep fig3a --out fig3a.nc

    grokscope runs export --sweep fig3a --table curves --out curves.parquet

    grokscope runs export --where phase=coexistence --format csv
    """
    if sum(map(bool, (run, sweep or where, everything))) != 1:
        raise GrokscopeError("say what to export: a run by its id, or runs with --sweep and --where, or --all")
    chosen = _format(format_, out, many=run is None)
    _check(chosen, table, out, run=run)
    opened = Store(store, create=False)
    if run is not None and chosen in _OF_ONE_RUN:
        _write(out, _packed(opened, run, chosen, out))
    elif chosen == "netcdf" and out is not None:
        _export_arrays(opened, out, run, sweep, where or ())
    else:
        name = table or ("curves" if run else "runs")
        _export_table(opened, out, chosen, name, _ids(opened, run, sweep, where or ()), one=run is not None)
    if out is not None:
        note(f"Wrote {out.absolute()}")


def _format(named: str | None, out: Path | None, *, many: bool) -> str:
    """What --format says, or the ending of the file; an error if they say different things."""
    if named is not None and named not in _ENDINGS:
        raise GrokscopeError(
            f"--format = {quoted(named)} is not allowed: must be one of {', '.join(_ENDINGS)}"
            f"{did_you_mean(named, _ENDINGS)}"
        )
    if out is None:
        return named or ("csv" if many else "json")
    by_ending = {ending: name for name, ending in _ENDINGS.items()}
    if named is None and out.suffix in by_ending:
        return by_ending[out.suffix]
    if named is None or out.suffix not in (_ENDINGS[named], ""):  # a pipe or a device has no ending
        endings = ", ".join(_ENDINGS.values()) if named is None else f"{_ENDINGS[named]} with --format {named}"
        raise GrokscopeError(f"--out = {quoted(str(out))} is not allowed: must end in {endings}")
    return named


def _check(chosen: str, table: str | None, out: Path | None, *, run: str | None) -> None:
    """Refuse what cannot be done, before any run is read."""
    if run is None and chosen in _OF_ONE_RUN:
        raise GrokscopeError(f"{chosen} is a format for one run: name it, or take csv, parquet or netcdf")
    if table is not None and table not in TABLES:
        raise GrokscopeError(
            f"--table = {quoted(table)} is not allowed: must be one of {', '.join(TABLES)}{did_you_mean(table, TABLES)}"
        )
    if table is not None and chosen not in ("csv", "parquet"):
        raise GrokscopeError(f"--table goes with csv and parquet; {chosen} has everything in one file")
    if out is None and chosen in ("parquet", "netcdf", "safetensors"):
        raise GrokscopeError(f"{chosen} is not text: name a file with --out, such as --out runs{_ENDINGS[chosen]}")
    for library in _LIBRARIES.get(chosen, ()):
        optional_module(library)
    if out is not None:
        check_writable([out])


def _packed(store: Store, run: str, chosen: str, out: Path | None) -> bytes:
    result = store.load(run)
    match chosen:
        case "toml":
            return result.spec.to_toml().encode()
        case "safetensors":
            if result.weights is None:
                note(f"Run {result.run_id} was stored without weights: the file has its curve and its spectra only.")
            return pack_run(result, store.resolve(run).record(), weights=True).content
    return (json.dumps(result.to_dict(), allow_nan=False, indent=2 if out else None) + "\n").encode()


def _write(out: Path | None, content: bytes) -> None:
    if out is None:
        typer.echo(content.decode(), nl=False)
    else:
        write_file(out, content)


def _ids(store: Store, run: str | None, sweep: str | None, where: Sequence[str]) -> list[str]:
    """The runs to export; an error if there is none."""
    if run is not None:
        return [store.resolve(run).run_id]
    if sweep is not None and not where:
        found = SweepView(store, sweep).ids()  # in the order of the cells
    else:
        found = store.ids(where, sweep=sweep and find_sweep(store, sweep).name)
    if not found:
        reason = "meets these conditions" if where else f"of the sweep {sweep} is done" if sweep else "is there"
        raise GrokscopeError(f"there is nothing to export: no run in the store {store.path} {reason}")
    return found


def _export_arrays(store: Store, out: Path, run: str | None, sweep: str | None, where: Sequence[str]) -> None:
    if sweep is not None and where:
        raise GrokscopeError("a sweep as netCDF has all of its cells: leave --where out, and choose with xarray")
    run_ids = _ids(store, run, sweep, where)
    with _progress(len(run_ids)) as on_run:
        if run is not None:
            dataset = run_dataset(store, run_ids[0], on_run)
        elif sweep is not None:
            dataset = sweep_dataset(store, SweepView(store, sweep).plan, on_run)
        else:
            dataset = runs_dataset(store, run_ids, on_run)
        write_netcdf(out, dataset)


def _export_table(store: Store, out: Path | None, chosen: str, name: str, run_ids: list[str], *, one: bool) -> None:
    with _progress(len(run_ids)) as on_run:
        table = TABLES[name](store, run_ids, on_run)
        if one and name != "runs":
            table = replace(table, kinds={column: kind for column, kind in table.kinds.items() if column != "run_id"})
        if out is None:
            _print(table)
        elif chosen == "parquet":
            write_parquet(out, table)
        else:
            write_csv(out, table)


def _print(table: StreamedTable) -> None:
    try:
        print_csv(sys.stdout, table)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read it has enough, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _progress(runs: int) -> Iterator[Callable[[], None]]:
    """Something to call after each run: it shows how far a long export is."""
    if runs < MANY:
        yield lambda: None
        return
    with counted("Exporting runs") as (on_item,):
        done = count(1)
        yield lambda: on_item(next(done), runs)
