"""Figure 15: a three-layer ReLU network with BatchNorm, at its input and at its output."""

from functools import partial
from typing import Unpack

from matplotlib.axes import Axes

from grokscope.experiments import tables
from grokscope.experiments.cause import Cause, Reason, Superseded
from grokscope.experiments.claim import Check, Claim, Remarks
from grokscope.experiments.dense import densely
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.quantities.curves import final
from grokscope.experiments.quantities.distributions import LOW_IPR, live_ipr, share_below
from grokscope.experiments.scale import Scale
from grokscope.phases import HIGH_ACCURACY
from grokscope.plots import draw_row
from grokscope.plots.runs import draw_accuracies, draw_ipr_histogram, draw_norm_scales, shared_handles
from grokscope.result import RunResult
from grokscope.spec import RunSpec

# The paper states α, ξ and the batch size. Steps and learning rate are those that it uses for batches of this size, and
# the parameterisation is that of its other deep networks.
SPEC = (
    RunSpec()
    .updated(
        {
            "task.data_fraction": 0.8,
            "task.corruption": 0.1,
            "model.depth": 3,
            "model.norm": "batch",
            "model.parameterization": "standard",
        }
    )
    .with_batches_of(64)
    .updated({"training.measure_every": 100})
)
MORE_CORRUPTED = SPEC.updated({"task.corruption": 0.2})  # where Table 2 could tell Inversion from Coexistence


def needs(scale: Scale) -> Needs:
    """One network."""
    return Needs(networks=(densely(SPEC),))


def draw(evidence: Evidence) -> Drawing:
    """Its curve, the IPR at both ends, and |γ| against the IPR at both ends."""
    result = evidence.network(densely(SPEC))
    panels = {
        result.outcome: partial(_draw_curve, result=result),
        "neurons": partial(draw_ipr_histogram, result=result),
        "first BatchNorm": partial(_draw_scales, result=result, end="input"),
        "last BatchNorm": partial(_draw_scales, result=result, end="output"),
    }
    figure = draw_row(panels)
    figure.axes[1].set_ylabel("neurons")
    name = "3-layer MLP"
    return Drawing(figure, tables.stacked(curve=tables.curves({name: result}), neurons=tables.neurons({name: result})))


def _draw_curve(axes: Axes, result: RunResult) -> None:
    draw_accuracies(axes, result)
    axes.set_ylabel("accuracy")
    handles = shared_handles([axes])
    axes.legend(handles.values(), handles, loc="center left")


def _draw_scales(axes: Axes, result: RunResult, end: str) -> None:
    """The two ends apart, because their scales differ in size."""
    draw_norm_scales(axes, result, [end])
    axes.set(ylabel="|γ|", ylim=(0, 1.1 * axes.get_ylim()[1]))  # room for the legend


# ---- what the claims measure ------------------------------------------------------------------------------------


def _output_above_input(result: RunResult) -> float:
    """The mean IPR at the output minus that at the input."""
    if result.outputs is None or result.neurons is None:
        return float("nan")
    return result.outputs.mean_ipr - result.neurons.mean_ipr


def _output_correlation(result: RunResult) -> float:
    """The rank correlation of |γ| with the IPR, at the output."""
    return float("nan") if result.outputs is None else result.outputs.norm_correlation


def _input_correlation(result: RunResult) -> float:
    """The same at the input."""
    return float("nan") if result.neurons is None else result.neurons.norm_correlation


_OTHER_RATES = Cause(
    Reason.UNEXPLAINED,
    "No learning rate of four shows all that the paper says; this is 0.005, which follows from the rule of Appendix "
    "A.1 for small batches, if it is meant for this network. With 0.0005, 0.001 and 0.002 the corrupted accuracy is "
    "0.97, 0.98 and 0.76, the test accuracy 0.09, 0.99 and 1.00, and the rank correlations are -0.21, 0.43 and 0.89 "
    "at the output, 0.01, 0.34 and 0.26 at the input (means of three seeds, docs/settings.md). The number of steps is "
    "not stated either: at step 3400 of our 8000 the corrupted accuracy is 0.84 with a test accuracy of 0.99 (seed 0).",
)


_SEEN = (
    "The bounds were set after one run at learning rate 0.005; runs at 0.001 and 0.002 had been seen too. For a while "
    "Figure 15 had 0.002, which shows best what the paper says about the neurons; 0.005 follows from Appendix A.1."
)


def _claim(name: str, paper: str, statement: str, *checks: Check, **remarks: Unpack[Remarks]) -> Claim:
    remarks.setdefault("seen_before", _SEEN)
    return Claim(name, paper, statement, checks, **remarks)


EXPERIMENT = Experiment(
    name="fig15",
    title="A three-layer network with BatchNorm",
    caption="A three-layer ReLU network with BatchNorm, trained on mini-batches of 64 at α = 0.8 and ξ = 0.1: its "
    "accuracies, the IPR of its neurons at the input (rows of U and V) and at the output (columns of W), and the scale "
    "|γ| of the BatchNorm next to them. "
    "In the paper it memorises all corrupted labels, and at the input |γ| does not follow the IPR; here it "
    "memorises a part of them, and |γ| follows the IPR there, too. The paper does not state the number of steps: after "
    "3400 of our 8000 it memorises most (0.84), and unlearns after that.",
    needs=needs,
    draw=draw,
    claims=(
        _claim(
            "deep-batchnorm-coexists",
            "Appendix G.4, Figure 15",
            "With BatchNorm and few corrupted labels a three-layer network generalises and memorises at once.",
            Check("test accuracy", final("test_accuracy"), low=HIGH_ACCURACY, of=SPEC),
            Check("train accuracy", final("train_accuracy"), low=HIGH_ACCURACY, of=SPEC),
            seen_before=f"{_SEEN} This claim first asked for a corrupted accuracy of 0.9 and failed. That check is now "
            "the claim deep-batchnorm-memorises-perfectly, which fails.",
            superseded=Superseded(
                ("deep-batchnorm-clearly-coexists",),
                "2026-11-19",
                "At ξ = 0.1 a network in Full Inversion has a train accuracy of 0.9 as well; the check that tells the "
                "two apart was taken out after it had failed.",
            ),
        ),
        _claim(
            "deep-batchnorm-clearly-coexists",
            "Appendix G.4, Figure 15",
            "With BatchNorm and few corrupted labels a three-layer network generalises, and memorises most of them.",
            Check("test accuracy", final("test_accuracy"), low=HIGH_ACCURACY, of=SPEC),
            Check("corrupted accuracy at ξ 0.1", final("corrupted_accuracy"), low=0.5, of=SPEC),
            stated="2026-11-19",
            seen_before="Stated after it had been measured for deep-batchnorm-coexists and "
            "deep-batchnorm-only-coexists.",
            cause=Cause(
                Reason.SEEDS,
                "The corrupted accuracy is 0.57 ± 0.11 over three seeds, on both sides of the bound.",
            ),
        ),
        _claim(
            "deep-batchnorm-memorises-perfectly",
            "Appendix G.4",
            "That network memorises (nearly) all of its corrupted labels.",
            Check("corrupted accuracy", final("corrupted_accuracy"), low=HIGH_ACCURACY, of=SPEC),
            cause=_OTHER_RATES,
        ),
        Claim(
            "deep-batchnorm-does-not-invert",
            "Section 2.2, Appendix G.4",
            "With BatchNorm alone a three-layer network only coexists: it finds the rule, and fits the corrupted "
            "labels as well.",
            (
                # With 0.1 of the labels corrupted, ignoring all of them is a train accuracy of 0.9 too.
                Check("corrupted accuracy at ξ 0.1", final("corrupted_accuracy"), low=0.5, of=SPEC),
                Check("test accuracy at ξ 0.2", final("test_accuracy"), HIGH_ACCURACY, of=MORE_CORRUPTED),
                Check("train accuracy at ξ 0.2", final("train_accuracy"), low=HIGH_ACCURACY, of=MORE_CORRUPTED),
            ),
            note="It does not invert, but at ξ = 0.2 it does not coexist either: it memorises everything, and by step "
            "8000 it has found the rule on 0.22 of the test set (seed 0).",
            seen_before=_SEEN,
            superseded=Superseded(
                ("deep-batchnorm-only-coexists",),
                "2026-11-17",
                "The paper says that it generalises for small ξ; that it does so at ξ = 0.2 is not said.",
            ),
        ),
        Claim(
            "deep-batchnorm-only-coexists",
            "Section 2.2, Appendix G.4",
            "With BatchNorm alone a three-layer network coexists at small ξ, and does not invert at a larger one.",
            (
                Check("corrupted accuracy at ξ 0.1", final("corrupted_accuracy"), low=0.5, of=SPEC),
                Check("train accuracy at ξ 0.2", final("train_accuracy"), low=HIGH_ACCURACY, of=MORE_CORRUPTED),
            ),
            stated="2026-11-17",
            seen_before="Stated after it had been measured for deep-batchnorm-does-not-invert.",
            cause=Cause(
                Reason.SEEDS,
                "At ξ = 0.1 the corrupted accuracy is 0.57 ± 0.11 over three seeds, on both sides of the bound; the "
                "learning rate of Figure 15 is not published.",
            ),
        ),
        _claim(
            "deep-batchnorm-periodic-output",
            "Appendix G.4, Figure 15",
            "The neurons at the output of that network are more periodic than those at its input.",
            Check("mean IPR, output minus input", _output_above_input, low=0.1, of=SPEC),
        ),
        _claim(
            "deep-batchnorm-keeps-low-ipr",
            "Appendix G.4",
            "Low-IPR neurons remain at the input of that network.",
            Check(
                "share of input neurons with IPR < 0.1",
                lambda result: share_below(live_ipr(result.neurons), LOW_IPR),
                low=0.2,
                of=SPEC,
            ),
        ),
        _claim(
            "deep-batchnorm-scales",
            "Appendix G.4, Figure 15",
            "The scales of the last BatchNorm follow the IPR of the output columns.",
            Check("rank correlation at the output", _output_correlation, low=0.5, of=SPEC),
            note="With a learning rate of 0.001, where the network memorises as in the paper, it fails: the "
            "correlation is 0.43 (mean of three seeds).",
        ),
        _claim(
            "deep-batchnorm-input-scales",
            "Appendix G.4, Figure 15",
            "At the input of that network the scales of BatchNorm hardly follow the IPR.",
            Check("rank correlation at the input", _input_correlation, low=-0.3, high=0.3, of=SPEC),
            cause=_OTHER_RATES,
            note="The same three runs on another CPU have correlations of 0.48, 0.52 and 0.42, all outside the bound "
            "(docs/settings.md).",
        ),
    ),
)
