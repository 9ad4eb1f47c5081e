"""Figure 13: Transformers with dropout."""

from grokscope.experiments import tables
from grokscope.experiments.cause import Cause, Reason, Superseded
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.paper.deep_networks import DEEP_NETWORKS_SEEN, LESS_TRANSFORMER
from grokscope.experiments.paper.fig03 import CORRUPTIONS, DATA_FRACTIONS
from grokscope.experiments.quantities.curves import final, final_ratio
from grokscope.experiments.quantities.deep import ipr_growth
from grokscope.experiments.quantities.regions import GENERALISING, Shares, share_grown, share_of
from grokscope.experiments.scale import Scale
from grokscope.phases import Phase
from grokscope.plots import draw_phase_diagrams
from grokscope.result import RunResult
from grokscope.spec import RunSpec
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.diagram import PhaseDiagram
from grokscope.sweeps.plan import Plan

# The paper states no weight decay here. With Figure 7's lower one a network memorises without dropout, so that what
# dropout adds can be seen; without any it does not even memorise.
DROPOUTS = (0.0, 0.05, 0.2)
_SELECTED = {"task.data_fraction": 0.9, "task.corruption": 0.1}


def plan(scale: Scale) -> Plan:
    """A panel for each dropout, at reduced scales only for none and the largest. The first is a panel of Figure 7."""
    shown = DROPOUTS if scale.full else (DROPOUTS[0], DROPOUTS[-1])
    axis = Axis.over("model.dropout", shown)
    return Plan("fig13", LESS_TRANSFORMER, (DATA_FRACTIONS, CORRUPTIONS, axis))


def specs() -> list[RunSpec]:
    """The networks of the histograms, at α = .9, ξ = .1."""
    return [LESS_TRANSFORMER.updated({**_SELECTED, "model.dropout": dropout}) for dropout in DROPOUTS]


NONE, SMALL, LARGE = specs()


def needs(scale: Scale) -> Needs:
    """A diagram, and three networks."""
    return Needs(networks=tuple(specs()), diagrams=(plan(scale),))


def draw(evidence: Evidence) -> Drawing:
    """The diagrams, then the histograms."""
    diagram = evidence.diagram(plan(evidence.scale))
    networks = {_title(result): result for result in evidence.networks(specs())}
    data = tables.stacked(fig13=diagram.to_columns(), neurons=tables.neurons(networks))
    return Drawing(draw_phase_diagrams([diagram], beside=[networks], outline="before"), data)


def _title(result: RunResult) -> str:
    return f"dropout {result.spec.model.dropout:g}\n{result.outcome}"


def _diagram(scale: Scale) -> tuple[Plan, ...]:
    return (plan(scale),)


def _grown_in_the_last_step(diagram: PhaseDiagram) -> float:
    """How much more of the diagram generalises with the largest dropout than with the one before it."""
    before, largest = diagram.panels[-2:]
    return share_of([largest], GENERALISING) - share_of([before], GENERALISING)


EXPERIMENT = Experiment(
    name="fig13",
    title="Phase diagrams and IPR of Transformers with dropout",
    caption="One-layer Transformers with dropout on the outputs of attention and MLP: phases over α and ξ, and the "
    "IPR of the dimensions of the embedding at α = 0.9, ξ = 0.1, with an outline of the same before training. The "
    "paper states no weight decay here; all have the smaller one of Figure 7, because without any they do not even "
    "memorise.",
    needs=needs,
    draw=draw,
    claims=(
        Claim(
            "transformer-little-dropout-coexists",
            "Appendix G.2, Figure 13",
            "With a little dropout a Transformer generalises and memorises at once, with a more periodic embedding.",
            (
                Check("test accuracy, dropout 0.05", final("test_accuracy"), low=0.9, of=SMALL),
                Check("train accuracy, dropout 0.05", final("train_accuracy"), low=0.9, of=SMALL),
                # Ignoring all wrong labels is a train accuracy of 0.9 too: only these labels show that it memorises.
                Check("corrupted accuracy, dropout 0.05", final("corrupted_accuracy"), low=0.5, of=SMALL),
                Check(
                    "IPR over that without dropout",
                    final_ratio("mean_ipr"),
                    low=1.05,
                    of=(SMALL, NONE),
                ),
            ),
            beside=specs(),
            seen_before=DEEP_NETWORKS_SEEN,
            superseded=Superseded(
                ("transformer-little-dropout-clearly-periodic",),
                "2026-11-19",
                "A twentieth more than without dropout is hardly more than noise, and a network without dropout may "
                "not have found the rule.",
            ),
        ),
        Claim(
            "transformer-little-dropout-clearly-periodic",
            "Appendix G.2, Figure 13",
            "With a little dropout a Transformer generalises and memorises at once, with an embedding that is at least "
            "twice as periodic as before training.",
            (
                Check("test accuracy, dropout 0.05", final("test_accuracy"), low=0.9, of=SMALL),
                Check("train accuracy, dropout 0.05", final("train_accuracy"), low=0.9, of=SMALL),
                Check("corrupted accuracy, dropout 0.05", final("corrupted_accuracy"), low=0.5, of=SMALL),
                Check("IPR over that at the start, dropout 0.05", ipr_growth, low=2, of=SMALL),
            ),
            beside=specs(),
            stated="2026-11-19",
            seen_before="Stated after it had been measured for transformer-little-dropout-coexists.",
            cause=Cause(
                Reason.UNPUBLISHED,
                "Neither the weight decay of Figure 13 nor where dropout acts is stated. With dropout in the "
                "authors' four places less is memorised (corrupted accuracy 0.13, one seed), and the IPR of the "
                "embedding is 0.057; with dropout 0.2 it is 0.15 (docs/settings.md).",
            ),
        ),
        Claim(
            "transformer-more-dropout-does-not-help",
            "Appendix G.2, Figure 13",
            "A dropout above 0.1 does not make a Transformer generalise better than less of it.",
            (
                Check(
                    "test accuracy with dropout 0.2 minus the best with less",
                    lambda large, *less: final("test_accuracy")(large) - max(map(final("test_accuracy"), less)),
                    of=(LARGE, NONE, SMALL),
                    high=0.02,
                ),
            ),
            note="At p = 97, d = 128 it holds: dropout 0.05 ends with a test accuracy of 0.996, 0.2 with 0.914, none "
            "with 0.394 (seed 0; of three seeds without dropout one finds the rule). At p = 47, d = 64 dropout 0.2 "
            "ends with 0.99, 0.05 with 0.94 and none with 0.24: the more of it, the sooner the network finds the rule.",
            seen_before=DEEP_NETWORKS_SEEN,
        ),
        Claim(
            "transformer-more-dropout-not-in-more-places",
            "Appendix G.2, Figure 13",
            "A dropout above 0.1 does not make Transformers generalise in more of the diagram.",
            (Check("growth of the share of generalising cells", share_grown(*GENERALISING), high=0.05, of=_diagram),),
            seen_before=DEEP_NETWORKS_SEEN,
            superseded=Superseded(
                ("transformer-more-dropout-not-beyond-little",),
                "2026-11-19",
                "It compares with no dropout. The paper compares with a small one.",
            ),
        ),
        Claim(
            "transformer-more-dropout-not-beyond-little",
            "Appendix G.2, Figure 13",
            "A dropout above 0.1 does not make Transformers generalise in more of the diagram than a small one.",
            (
                Check(
                    "share that generalises, dropout 0.2 minus 0.05",
                    Shares(_grown_in_the_last_step, difference=True),
                    high=0.05,
                    of=_diagram,
                ),
            ),
            stated="2026-11-19",
            seen_before="Stated after the diagrams had been drawn.",
            note="At reduced scales, where there is no panel for 0.05, it compares with no dropout.",
        ),
        Claim(
            "transformer-dropout-confuses",
            "Section 2.2",
            "Dropout mostly enlarges the part of the diagram in which a Transformer neither memorises nor generalises.",
            (Check("growth of the share of Confusion", share_grown(Phase.CONFUSION), low=0.1, of=_diagram),),
            note="It compares dropout 0.2 with none. With 0.05 not one of the 50 cells is in Confusion, fewer than the "
            "three without dropout.",
        ),
    ),
)
