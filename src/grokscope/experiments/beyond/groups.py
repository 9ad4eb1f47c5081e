"""Beyond the paper: are the phases those of addition only, or of every group?"""

from typing import Unpack

import numpy as np

from grokscope.experiments import tables
from grokscope.experiments.beyond.groups_picture import draw_groups
from grokscope.experiments.cause import Cause, Reason
from grokscope.experiments.claim import Check, Claim, Remarks
from grokscope.experiments.evidence import Evidence, Needs, View
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.paper.fig03 import WEIGHT_DECAY as ADDITION
from grokscope.experiments.paper.fig03 import with_decay
from grokscope.experiments.quantities.curves import final
from grokscope.experiments.quantities.pruned import LOWEST, by_ipr
from grokscope.experiments.quantities.regions import GENERALISING, INVERTING, Region, Shares, agreement, larger_share
from grokscope.experiments.scale import Scale
from grokscope.groups import Irreducibles
from grokscope.measure import PruningCurve
from grokscope.phases import Phase
from grokscope.result import RunResult
from grokscope.spec import RunSpec
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.plan import Plan

# A network of S5 takes four times as long as one of addition, and so has fewer panels.
DECAYS = {"D48": (0, 5, 15), "S5": (0, 5)}
# With 96 elements the polygon's group is as large as the paper's 97 residues; S5 has 120.
GROUPS = ("D48", "S5")
_WORDS = {"D48": "the dihedral group", "S5": "S5"}


def in_group(spec: RunSpec, group: str) -> RunSpec:
    """The same run on the products of a group."""
    return spec.updated({"task.kind": "group", "task.group": group})


PLANS = {
    group: Plan(
        f"beyond-groups-{group.lower()}",
        in_group(RunSpec(), group),
        (*ADDITION.axes[:2], Axis.over("optimizer.weight_decay", DECAYS[group])),
    )
    for group in GROUPS
}
# Much data and few wrong labels: where addition is far from every boundary.
EASY = RunSpec().updated({"task.data_fraction": 0.8, "task.corruption": 0.2})
INVERTED = {group: in_group(EASY.updated({"optimizer.weight_decay": 5}), group) for group in GROUPS}
COEXISTING = {group: in_group(EASY, group) for group in GROUPS}


DRAWN = (ADDITION, *PLANS.values())


def needs(scale: Scale) -> Needs:
    """The diagrams of addition and of groups, and a network with weight decay for each group."""
    return Needs(diagrams=DRAWN, networks=tuple(INVERTED.values()))


def draw(evidence: Evidence) -> Drawing:
    """A row for each group, addition above; below the IPR of the neurons over representations."""
    diagrams = {_title(plan, evidence.scale): evidence.diagram(plan) for plan in DRAWN}
    networks = {group: evidence.network(spec) for group, spec in INVERTED.items()}
    data = tables.stacked(
        **{name: diagram.to_columns() for name, diagram in diagrams.items()}, neurons=tables.neurons(networks)
    )
    noise = {group: irreducibles(network).noise_ipr for group, network in networks.items()}
    return Drawing(draw_groups(diagrams, networks, noise), data)


def _title(plan: Plan, scale: Scale) -> str:
    """The group as the scale has it: D48 may have become smaller."""
    task = scale.diagram(plan).base.task
    return str(task.group) if task.kind == "group" else task.describe()


def irreducibles(result: RunResult) -> Irreducibles:
    """The representations of the group that a network was trained on."""
    basis = result.spec.task.waves()
    assert isinstance(basis, Irreducibles)
    return basis


def _above_noise(result: RunResult) -> float:
    """The mean IPR on a scale from 0, that of random weights, to 1, that of a single representation."""
    noise = irreducibles(result).noise_ipr
    return (result.final.mean_ipr - noise) / (1 - noise)


def _memory_left(curves: dict[str, PruningCurve]) -> float:
    """The lowest corrupted accuracy that low-first pruning reaches before test accuracy has lost 0.05."""
    curve = curves[LOWEST]
    lost = np.maximum.accumulate(curve.test_accuracy[0] - curve.test_accuracy)
    return float(curve.corrupted_accuracy[lost <= 0.05].min())


def _agreement(*panels: Region) -> float:
    """The share of cells of all weight decays that end as with addition."""
    pairs = list(zip(panels[::2], panels[1::2], strict=True))
    return sum(agreement(*pair) for pair in pairs) / len(pairs)


def _largest_difference(*panels: Region) -> float:
    """The largest difference, over the weight decays, between the shares that generalise in both."""
    pairs = zip(panels[::2], panels[1::2], strict=True)
    return max(abs(plus.share(*GENERALISING) - times.share(*GENERALISING)) for plus, times in pairs)


def _phases_seen(*panels: Region) -> float:
    """How many of the six phases occur."""
    return len({outcome for panel in panels for row in panel.outcomes for outcome in row} & {*map(str, Phase)})


def _claim(name: str, statement: str, *checks: Check, **remarks: Unpack[Remarks]) -> Claim:
    return Claim(f"beyond-groups-{name}", "beyond the paper", statement, checks, **remarks)


def _beside_addition(group: str) -> list[View]:
    return [panel for decay in DECAYS[group] for panel in (with_decay(decay), with_decay(decay, PLANS[group]))]


_FOUR_PHASES = (
    "Four occur at weight decays 0, 5 and 15 at the quick scale, and with addition the same four. Addition shows "
    "Forgetting and Confusion only at weight decay 20; a panel for it was planned when the bound was set, and left out "
    "for its cost."
)
_INVERTS_ANYWAY = (
    "At the quick scale networks of S5 invert without weight decay already, where those of addition coexist or "
    "memorise: in 4 of 25 cells, and in 5 with weight decay 5. They have as many neurons as those of "
    "addition, for four times as many pairs."
)


def _about_diagrams(group: str, kinds_note: str = "", decay_note: str = "") -> tuple[Claim, ...]:
    """What is claimed about the diagrams of one group; each is judged as soon as its own runs are there."""
    panels = [with_decay(decay, PLANS[group]) for decay in DECAYS[group]]
    return (
        _claim(
            f"universal-{group.lower()}",
            f"The phases are universal: a cell of the diagrams ends for {_WORDS[group]} mostly as for addition.",
            Check("share of cells with the same phase", _agreement, low=0.7, of=_beside_addition(group)),
            Check(
                "largest difference of the shares that generalise",
                Shares(_largest_difference, difference=True),
                high=0.15,
                of=_beside_addition(group),
            ),
        ),
        _claim(
            f"same-kinds-{group.lower()}",
            f"At least five of the six phases occur in the diagrams of {_WORDS[group]}.",
            Check("phases", _phases_seen, low=5, of=panels),
            cause=Cause(
                Reason.BOUND, "Addition shows the same four: the bound was set for a weight decay that was left out."
            ),
            note=kinds_note,
        ),
        _claim(
            f"weight-decay-inverts-{group.lower()}",
            f"For {_WORDS[group]} too weight decay makes networks invert: more with weight decay 5 than without.",
            Check(
                "share that inverts, weight decay 5 minus 0",
                larger_share(*INVERTING),
                low=0.05,
                of=[with_decay(decay, PLANS[group]) for decay in (5, 0)],
            ),
            note=decay_note,
        ),
    )


EXPERIMENT = Experiment(
    name="beyond-groups",
    title="Beyond the paper: other groups",
    caption="Phase diagrams as in Figure 3(a) for addition, for the products of a dihedral group (the symmetries of a "
    "polygon) and for those of the permutations of five things (S5). Below: the IPR of the neurons "
    "of one network for each group (α = 0.8, ξ = 0.2, weight decay 5), over the irreducible representations of the "
    "group; the dotted line is the IPR of random weights.",
    needs=needs,
    draw=draw,
    claims=(
        *_about_diagrams("D48", _FOUR_PHASES),
        *_about_diagrams("S5", decay_note=_INVERTS_ANYWAY),
        _claim(
            "representations",
            "Where networks generalise their neurons are made of single irreducible representations, as those of "
            "addition are made of single waves: the mean IPR is more than half way from random weights to one "
            "representation.",
            *(
                check
                for group in GROUPS
                for check in (
                    Check(f"test accuracy, {_WORDS[group]}", final("test_accuracy"), low=0.9, of=INVERTED[group]),
                    Check(
                        f"mean IPR between noise and one, {_WORDS[group]}", _above_noise, low=0.5, of=INVERTED[group]
                    ),
                )
            ),
        ),
        _claim(
            "low-ipr-memorises",
            "Without weight decay too the neurons of low IPR are those that memorise: pruned from the lowest IPR a "
            "network loses the wrong labels before it loses the rule.",
            *(
                Check(
                    f"corrupted accuracy left while test accuracy is within 0.05, {_WORDS[group]}",
                    _memory_left,
                    high=0.1,
                    of=by_ipr(COEXISTING[group]),
                )
                for group in GROUPS
            ),
        ),
    ),
)
