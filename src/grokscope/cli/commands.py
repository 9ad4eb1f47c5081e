"""All commands. They are imported when they are called: `grokscope --help` needs only their names and first lines.

A new command is a function (for several under one name, a `typer.Typer`) in a module of its name, and one line here.
"""

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

# The first line of each command's help, in the order of `grokscope --help`.
COMMANDS = {
    "train": "Train one network, store the run and name its phase.",
    "show": "Draw a run: its curves, the IPR histogram of its neurons, and the scales of its norm if it has one.",
    "runs": "List, show, tag, name, export and delete stored runs.",
    "store": "Check, repair and merge stores.",
    "sweep": "Train a whole diagram of networks, and go on where an earlier sweep stopped.",
    "sweeps": "Rename and delete sweeps of the store.",
    "status": "Show how many runs of each sweep are done, under way, failed and left, and why runs failed.",
    "phase-diagram": "Draw the phase diagram of a sweep, finished or not; missing cells are shown as missing.",
    "explore": "Show the store in the browser: click on a phase diagram, and see the network.",
    "report": "Write the explorer's page on some sweeps as one file, which opens without a server and without a "
    "network.",
    "prune": "Remove the neurons of a two-layer network one at a time, without retraining, and track what it "
    "still knows.",
    "spectrum": "Decompose the weights of a network into waves: frequencies, phases, IPR.",
    "logits": "Show the logits of corrupted examples, and the margin of the true label on all examples.",
    "dynamics": "Show when a run memorised, grokked, unlearned the corrupted labels and forgot the rule, from its "
    "stored curve.",
    "animate": "Draw a run as a film: its accuracies, the weights of some neurons, their spectra, and its phase so "
    "far.",
    "ablate": "Replace the neurons of a two-layer network by pure waves, keep or remove frequencies, and measure "
    "the result.",
    "audit": "Rank the training examples of a run by how wrong their labels look to the network, and measure how "
    "good that is.",
    "figure": "Draw figures of the paper, after doing the runs that they need and the store does not have.",
    "figures": "The paper's figures and tables, and experiments beyond it.",
    "claims": "Check what the paper says against runs, after doing those that the store does not have.",
    "reproduce": "Make all figures, then check all claims: the whole paper from one command. The exit status is 1 if "
    "runs failed.",
    "download": "Download MNIST (12 MB) as compressed IDX files, and check them.",
    "doctor": "Look at this installation: engine, packages, store, machine and speed.",
    "demo": "Train the three networks of Figure 1 at full scale and draw them.",
}
# Commands in a module of another name.
MODULES = {"report": "explore", "figures": "figure", "reproduce": "figure"}


class Commands(TyperGroup):
    """A group that knows its commands by name."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=line) for name, line in COMMANDS.items()} | {**self.commands}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that these arguments call, with its options."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, loaded(name) if name in COMMANDS else command, rest


def all_commands() -> dict[str, Any]:
    """Every command with its options, for references and tests."""
    return {name: loaded(name) for name in COMMANDS}


def loaded(name: str) -> Any:
    """A command with its options, as typer makes it of its function."""
    module = import_module(f"grokscope.cli.{MODULES.get(name, name.replace('-', '_'))}")
    command = getattr(module, name.replace("-", "_"))
    holder = typer.Typer(rich_markup_mode="rich", add_completion=False, pretty_exceptions_enable=False)
    holder.callback()(lambda: None)  # makes it a group, even of one command
    if isinstance(command, typer.Typer):
        holder.add_typer(command, name=name)
    else:
        holder.command(name)(command)
    group: Any = typer.main.get_command(holder)
    return group.commands[name]


def help_without_command(context: typer.Context) -> None:
    """Print what the commands are if none was given."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
