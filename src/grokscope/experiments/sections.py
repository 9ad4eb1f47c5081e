"""The paper's sections, with the figures and tables that stand in them or that their claims are told about."""

from collections.abc import Iterable
from typing import NamedTuple

from grokscope.experiments.record import Entry


class Section(NamedTuple):
    """A section of the paper, or what goes beyond it."""

    title: str
    figures: tuple[str, ...]  # names of experiments


SECTIONS = (
    Section("1 Introduction and preliminaries", ("fig01", "fig02")),
    Section("2 Grokking with label noise", ("table1", "fig03a", "fig03b")),
    Section("2.1 Generalizing and memorizing sub-networks", ("fig04", "fig05", "fig06")),
    Section("2.2 General architectures", ("fig07a", "fig07b")),
    Section("C Quantitative characterization of phases", ("table2",)),
    Section("D Analytical solution", ("analytic",)),
    Section("E Forgetting phase", ("fig08",)),
    Section("F BatchNorm, LayerNorm and mini-batches", ("fig09", "fig10", "fig11")),
    Section("G Transformers and deep MLPs", ("fig12", "fig13", "fig14", "fig15")),
    Section("H General datasets", ("fig16",)),
    Section("I Additional pruning curves", ("fig17", "fig18")),
    Section("J Additional training curves", ("fig19", "fig20", "fig21", "fig22")),
    Section("K Output logits", ("fig23",)),
    Section("L Detailed phase diagrams", ("fig24", "fig25")),
    Section("M Choice of loss function", ("fig26",)),
    Section("N Choice of activation function", ("fig27", "fig28")),
    Section("O Effect of width", ("fig29", "fig30")),
    Section("P Other modular arithmetic datasets", ("fig31",)),
    Section("Q How many neurons can be pruned", ("fig32",)),
    Section(
        "Beyond the paper",
        ("beyond-fate", "beyond-groups", "beyond-modulus", "beyond-noise", "beyond-probability", "beyond-prunable"),
    ),
)
BEYOND = SECTIONS[-1]


def entries_of(figure: str, entries: Iterable[Entry]) -> list[Entry]:
    """The entries of the claims about a figure."""
    from grokscope.experiments.catalogue import EXPERIMENTS

    about = {claim.id for claim in EXPERIMENTS[figure].claims}
    return [entry for entry in entries if entry.claim.id in about]
