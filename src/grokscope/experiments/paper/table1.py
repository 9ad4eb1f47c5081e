"""Table 1: the phases in words, each beside a network that is in it."""

import math

import numpy as np

from grokscope.experiments.captions import settings
from grokscope.experiments.cause import Cause, Reason
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.paper import fig01, fig08
from grokscope.experiments.quantities.curves import final
from grokscope.experiments.quantities.distributions import PERIODIC_IPR
from grokscope.experiments.scale import Scale
from grokscope.experiments.tables import from_rows
from grokscope.phases import HIGH_ACCURACY, Phase
from grokscope.plots.tables import draw_table
from grokscope.result import RunResult
from grokscope.spec import RunSpec

# The paper names settings for four phases; the others are from the middle of their regions in Figure 3.
NETWORKS: dict[Phase, RunSpec] = {
    Phase.COEXISTENCE: fig01.COEXISTENCE,
    Phase.PARTIAL_INVERSION: fig01.PARTIAL,
    Phase.FULL_INVERSION: fig01.FULL,
    Phase.MEMORIZATION: fig01.COEXISTENCE.updated({"task.data_fraction": 0.2}),
    Phase.FORGETTING: fig08.FORGETTING,
    Phase.CONFUSION: fig01.COEXISTENCE.updated({"model.dropout": 0.9}),
}
_WORDS: dict[Phase, tuple[str, str]] = {  # memorises corrupted labels, generalises
    Phase.COEXISTENCE: ("yes", "yes"),
    Phase.PARTIAL_INVERSION: ("partially", "yes"),
    Phase.FULL_INVERSION: ("no", "yes"),
    Phase.MEMORIZATION: ("yes", "no"),
    Phase.FORGETTING: ("no", "no"),
    Phase.CONFUSION: ("no", "no"),
}
_MEMORISES = {"yes": (0.9, 1.0), "partially": (0.1, 0.9), "no": (0.0, 0.1)}  # corrupted accuracy
_GENERALISES = {"yes": (0.9, 1.0), "no": (0.0, 0.9)}  # test accuracy, as in Table 2


def needs(scale: Scale) -> Needs:
    """One network for each phase."""
    return Needs(networks=tuple(NETWORKS.values()))


def draw(evidence: Evidence) -> Drawing:
    """A row for each phase: the words of the paper, and what a network does."""
    rows = [(phase, *_WORDS[phase], evidence.network(spec)) for phase, spec in NETWORKS.items()]
    headings = ("phase", "memorises corrupted", "corrupted accuracy", "generalises", "test accuracy", "network")
    shown = [
        (
            phase.label,
            memorises,
            f"{result.final.corrupted_accuracy:.3f}",
            generalises,
            f"{result.final.test_accuracy:.3f}",
            setting_of(result.spec),
        )
        for phase, memorises, generalises, result in rows
    ]
    figure = draw_table(headings, shown, (1.5, 1.6, 1.5, 1.0, 1.2, 3.2), [phase.color for phase in NETWORKS])
    data = from_rows(("phase", "memorises", "corrupted_accuracy", "generalises", "test_accuracy", "setting"), shown)
    return Drawing(figure, {**data, "run_id": [result.run_id for *_, result in rows]})


def setting_of(spec: RunSpec) -> str:
    """Weight decay and data fraction, and what else differs from the defaults.

    >>> setting_of(NETWORKS[Phase.COEXISTENCE]), setting_of(NETWORKS[Phase.CONFUSION])
    ('weight decay 0, α = 0.5', 'weight decay 0, α = 0.5, dropout = 0.9')
    """
    always = [f"weight decay {spec.optimizer.weight_decay:g}", f"α = {spec.task.data_fraction:g}"]
    others = [part.partition(".")[2].replace("_", " ") for part in settings(spec).split(", ") if "." in part]
    shown_already = ("weight decay", "data fraction")
    return ", ".join([*always, *(part for part in others if not part.startswith(shown_already))])


def _checks() -> tuple[Check, ...]:
    checks = []
    for phase, (memorises, generalises) in _WORDS.items():
        low, high = _MEMORISES[memorises]
        checks.append(
            Check(f"corrupted accuracy, {phase.label}", final("corrupted_accuracy"), low, high, of=NETWORKS[phase])
        )
        low, high = _GENERALISES[generalises]
        checks.append(Check(f"test accuracy, {phase.label}", final("test_accuracy"), low, high, of=NETWORKS[phase]))
    return tuple(checks)


def _periodic_gap(*results: RunResult) -> float:
    """The smallest share of periodic neurons where test accuracy is high, minus the largest where it is not."""
    shares: dict[bool, list[float]] = {True: [], False: []}
    for result in results:
        if result.neurons is not None:
            share = float(np.mean(result.neurons.neuron_ipr > PERIODIC_IPR))
            shares[result.final.test_accuracy >= HIGH_ACCURACY].append(share)
    return min(shares[True]) - max(shares[False]) if all(shares.values()) else math.nan


EXPERIMENT = Experiment(
    name="table1",
    title="The phases in words",
    caption="What distinguishes the phases, with the accuracies of one network in each: on corrupted training "
    "examples, measured against the drawn labels, and on the test set. The table says that in Confusion none of them "
    "are memorised, the text that not all of them are, which is what is seen.",
    needs=needs,
    draw=draw,
    claims=(
        Claim(
            "phases-in-words",
            "Table 1",
            "Each phase memorises corrupted labels, and generalises, as its row of the table says.",
            _checks(),
            cause=Cause(
                Reason.CONTRADICTION,
                "Table 1 says that a network in Confusion memorises no corrupted label, and Section 2 that it does "
                "not manage to memorise all of them, which is what is seen.",
            ),
            note="The network in Confusion, with dropout 0.9, memorises half of the corrupted labels. That agrees "
            "with the text, by which it cannot memorise all of them, and not with the table, by which it memorises "
            "none.",
        ),
        Claim(
            "more-periodic-neurons-generalise",
            "Section 1.1",
            "A larger population of high-IPR neurons goes with generalisation: networks that generalise have a larger "
            "share of them than networks that do not.",
            (
                Check(
                    "smallest share with IPR above 0.5 where it generalises minus largest where it does not",
                    _periodic_gap,
                    low=0.1,
                    of=[spec for phase, spec in NETWORKS.items() if phase is not Phase.FORGETTING],
                ),
            ),
            stated="2026-11-17",
            seen_before="Stated after Figure 4, with three of these networks, had been seen.",
            note="The network that forgets is left out: its neurons are dead.",
        ),
    ),
)
