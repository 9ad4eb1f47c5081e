"""Figure 12: how periodic the embeddings of Transformers of other shapes become."""

from typing import Unpack

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure

from grokscope.experiments import tables
from grokscope.experiments.cause import Cause, Reason, Superseded
from grokscope.experiments.claim import Check, Claim, Remarks
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.paper.deep_networks import MORE_RATED, MORE_TRANSFORMER, UNKNOWN_OPTIMISER
from grokscope.experiments.quantities.curves import final
from grokscope.experiments.quantities.deep import ipr_growth, ipr_ratio
from grokscope.experiments.scale import Scale
from grokscope.plots import STYLE
from grokscope.plots.runs import draw_ipr_histogram, shared_ipr_limit
from grokscope.result import RunResult
from grokscope.spec import RunSpec

HEADS = (8, 4)
SHAPES = {"1 layer": (1, False), "2 layers": (2, False), "1 layer, tied": (1, True)}  # layers, tied weights


def spec(heads: int, shape: str, base: RunSpec = MORE_TRANSFORMER) -> RunSpec:
    """One of the Transformers, at α = .8, ξ = .2 and the weight decay with which Figure 7's generalises."""
    layers, tied = SHAPES[shape]
    return base.updated({"model.heads": heads, "model.layers": layers, "model.tie_weights": tied})


EIGHT_RATED = spec(8, "1 layer", MORE_RATED)


def specs() -> list[RunSpec]:
    """All of them, row by row of the figure."""
    return [spec(heads, shape) for heads in HEADS for shape in SHAPES]


def needs(scale: Scale) -> Needs:
    """Six networks, one of which is Figure 7's."""
    return Needs(networks=tuple(specs()))


def draw(evidence: Evidence) -> Drawing:
    """A row for each number of heads."""
    results = {f"{heads} heads, {shape}": evidence.network(spec(heads, shape)) for heads in HEADS for shape in SHAPES}
    return Drawing(_picture(results), tables.neurons(results))


def _picture(results: dict[str, RunResult]) -> Figure:
    with style.context(STYLE):
        figure = Figure(figsize=(1 + 3.4 * len(SHAPES), 0.4 + 3 * len(HEADS)))
        grid = figure.subplots(len(HEADS), len(SHAPES), squeeze=False, sharey=True)
        limit = shared_ipr_limit(results.values())
        for axes, (name, result) in zip(grid.flat, results.items(), strict=True):
            draw_ipr_histogram(axes, result, "before", limit=limit)
            axes.set_title(f"{name}\n{result.outcome}")
        for axes in grid[:, 0]:
            axes.set_ylabel("dimensions of the embedding")
    return figure


_TOO_SMALL = (
    "At the quick scale (p = 47, d = 64, 2000 steps) only the Transformer with four heads and one layer has found the "
    "rule in the end, with a test accuracy of 0.91; the others have 0.38 to 0.72. Only networks that have found it "
    "are compared."
)
_SEEN = "At p = 97, d = 128 all six end in Full Inversion, with a mean IPR that had been 0.040 before training. "


def _claim(name: str, paper: str, statement: str, *checks: Check, **remarks: Unpack[Remarks]) -> Claim:
    return Claim(name, paper, statement, checks, beside=specs(), **remarks)


def _per_heads(other: str, what: str, low: float, high: float) -> tuple[Check, ...]:
    """A shape compared with the plain one, at each number of heads."""

    return tuple(
        Check(f"{what}, {heads} heads", ipr_ratio, low, high, of=(spec(heads, other), spec(heads, "1 layer")))
        for heads in HEADS
    )


def _more_heads(shape: str) -> Check:
    return Check(
        f"IPR with 8 heads over that with 4, {shape}", ipr_ratio, low=1.05, of=[spec(heads, shape) for heads in HEADS]
    )


# Before training the mean IPR varies by 1.3 % between seeds at p = 97, d = 128, and by 2.2 % at p = 47, d = 64, where a
# difference of 5 % between single seeds is not much. Histograms this broad look alike if their means differ by a fifth.
EXPERIMENT = Experiment(
    name="fig12",
    title="IPR of the embeddings of Transformers with other depths, heads and tied weights",
    caption="The IPR of the dimensions of the embedding at α = 0.8 and ξ = 0.2, with an outline of the same before "
    "training, for Transformers with eight heads (above) and four (below): with one layer, with two, and with the "
    "embedding tied to the unembedding. "
    "The paper says that depth changes nothing, that more heads raise the IPR and that tying lowers it; with plain "
    "AdamW, which all of these have, a second layer and tying raise it here, and more heads do not. With a rate for "
    "each module seeds disagree about more heads.",
    needs=needs,
    draw=draw,
    claims=(
        _claim(
            "transformer-shapes-periodic",
            "Appendix G.1, Figure 12",
            "Transformers of all these shapes find the rule, and their embeddings become more periodic.",
            Check(
                "lowest test accuracy", lambda *results: min(map(final("test_accuracy"), results)), low=0.9, of=specs()
            ),
            Check(
                "smallest IPR over that at the start",
                lambda *results: float(np.min([ipr_growth(result) for result in results])),
                low=1.1,
                of=specs(),
            ),
            note=_SEEN + _TOO_SMALL,
            superseded=Superseded(
                ("transformer-shapes-clearly-periodic",),
                "2026-11-17",
                "A tenth more than noise is less than what Figure 7(a) shows of such embeddings, an IPR that at "
                "least doubles.",
            ),
        ),
        _claim(
            "transformer-shapes-clearly-periodic",
            "Appendix G.1, Figure 12",
            "Transformers of all these shapes find the rule, and their embeddings become at least twice as periodic.",
            Check(
                "lowest test accuracy", lambda *results: min(map(final("test_accuracy"), results)), low=0.9, of=specs()
            ),
            Check(
                "smallest IPR over that at the start",
                lambda *results: float(np.min([ipr_growth(result) for result in results])),
                low=2,
                of=specs(),
            ),
            stated="2026-11-17",
            seen_before="Stated after it had been measured for transformer-shapes-periodic.",
            cause=UNKNOWN_OPTIMISER,
        ),
        _claim(
            "transformer-depth-keeps-ipr",
            "Figure 12",
            "A second layer does not change the IPR of a Transformer's embedding.",
            *_per_heads("2 layers", "IPR with 2 layers over that with 1", 0.8, 1.25),
            cause=Cause(
                Reason.UNPUBLISHED,
                "The optimiser scheme and the weight decay of Figure 12 are not published, and with plain AdamW all "
                "embeddings stay far below the IPR of Figure 7(a); one seed.",
            ),
            note=_SEEN
            + "In two layers it ends at 0.079 instead of 0.048 with 8 heads, and 0.086 instead of 0.051 with 4. "
            + _TOO_SMALL,
        ),
        _claim(
            "transformer-heads-raise-ipr",
            "Figure 12",
            "More heads make a Transformer's embedding more periodic.",
            _more_heads("1 layer"),
            _more_heads("2 layers"),
            cause=Cause(
                Reason.UNPUBLISHED,
                "The optimiser scheme and the weight decay of Figure 12 are not published; with plain AdamW and one "
                "seed the difference is a few percent, in the other direction. With a rate for each module seeds "
                "disagree (transformer-module-rates-heads).",
            ),
            note=_SEEN
            + "With 8 heads it ends at 0.048 in one layer and 0.079 in two, with 4 heads at 0.051 and 0.086. "
            + _TOO_SMALL,
        ),
        Claim(
            "transformer-module-rates-heads",
            "Figure 12",
            "With a rate for each module, as the authors' code can have it, more heads make a Transformer's embedding "
            "more periodic.",
            (
                Check("test accuracy with 8 heads", final("test_accuracy"), low=0.9, of=EIGHT_RATED),
                Check("IPR with 8 heads over that with 4", ipr_ratio, low=1.05, of=(EIGHT_RATED, MORE_RATED)),
            ),
            seeds=5,
            stated="2026-11-18",
            seen_before="Stated after one seed of both networks had been seen.",
            cause=Cause(
                Reason.SEEDS,
                "All five seeds with eight heads find the rule, and three with four. Of these three one has the higher "
                "IPR with four heads.",
            ),
            note="Whether the paper used these rates is not known. With them and tied weights a network learns nothing "
            "at this learning rate.",
        ),
        _claim(
            "transformer-tying-lowers-ipr",
            "Figure 12",
            "A Transformer whose unembedding is its embedding has a less periodic one.",
            *_per_heads("1 layer, tied", "IPR tied over that untied", 0.0, 0.95),
            cause=Cause(
                Reason.UNPUBLISHED,
                "The optimiser scheme of Figure 12 is not published. How the tied matrix starts does not explain it: "
                "as an output layer, as in the authors' code, it ends with an IPR of 0.091, further from the paper "
                "than the 0.062 as an embedding (docs/settings.md); one seed.",
            ),
            note=_SEEN
            + "Tied it ends at 0.069 instead of 0.048 with 8 heads, and 0.062 instead of 0.051 with 4. "
            + _TOO_SMALL,
        ),
    ),
)
