"""What to say to somebody who mistyped an option, or knows it by another name."""

import difflib
from collections.abc import Sequence

import typer

# What options of other programs are called that do the same.
_ALSO_CALLED = {
    "epochs": "steps",
    "iterations": "steps",
    "noise": "corruption",
    "label-noise": "corruption",
    "decay": "weight-decay",
    "l2": "weight-decay",
    "hidden": "width",
    "neurons": "width",
    "layers": "depth",
    "gpu": "device",
    "cuda": "device",
    "jobs": "workers",
    "parallel": "workers",
    "processes": "workers",
    "filter": "where",
    "order-by": "sort",
    "output": "out",
    "config": "spec",
    "overwrite": "force",
}


def usage_message(error: typer.TyperException) -> str:
    """What is wrong with a command line; for an option that does not exist, which one may be meant."""
    wrong, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if wrong is None or context is None or not hasattr(error, "possibilities"):
        return str(error.format_message()) if hasattr(error, "format_message") else str(error)
    known = [name for parameter in context.command.params for name in (*parameter.opts, *parameter.secondary_opts)]
    meant = nearest_option(wrong, known)
    help_command = f"`{context.command_path} --help` lists the options"
    return f"there is no option {wrong}; " + (f"did you mean {meant}?" if meant else help_command)


def nearest_option(wrong: str, known: Sequence[str]) -> str | None:
    """The option that somebody means, if one is near enough.

    >>> nearest_option("--epochs", ["--steps", "--depth"]), nearest_option("--data_fraction", ["--data-fraction"])
    ('--steps', '--data-fraction')
    """
    word = wrong.lstrip("-").lower().replace("_", "-")
    options = {name.lstrip("-").lower(): name for name in known if name.startswith("--")}
    if _ALSO_CALLED.get(word) in options:
        return options[_ALSO_CALLED[word]]
    found = difflib.get_close_matches(word, list(options), n=1, cutoff=0.6)
    return options[found[0]] if found else None
