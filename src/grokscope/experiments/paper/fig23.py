"""Figure 23: the logits of corrupted training examples in three phases."""

import numpy as np

from grokscope.arrays import Int64Array
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.paper import fig01
from grokscope.experiments.scale import Scale
from grokscope.experiments.tables import from_rows
from grokscope.measure import LogitTable, logits_of, measure_logits
from grokscope.plots.logits import draw_logits_of_networks
from grokscope.result import RunResult

_SHOWN = 4


def needs(scale: Scale) -> Needs:
    """The networks of Figure 1."""
    return Needs(networks=tuple(fig01.specs()))


def draw(evidence: Evidence) -> Drawing:
    """A row for each network, and in it the same four examples."""
    titles = {fig01.name_of(result): result for result in evidence.networks(fig01.specs())}
    measured = {title: measure_logits(result.module(), result.dataset()) for title, result in titles.items()}
    shown = _two_labels(next(iter(measured.values())))[:_SHOWN]  # the data are the same in all three
    networks = {
        title: (table, logits_of(titles[title].module(), table.pairs[shown])) for title, table in measured.items()
    }
    rows = [
        (
            title,
            titles[title].run_id,
            *map(int, table.pairs[k]),
            q,
            float(logit),
            q == table.truth[k],
            q == table.label[k],
        )
        for title, (table, logits) in networks.items()
        for k, own in zip(shown, logits, strict=True)
        for q, logit in enumerate(own)
    ]
    names = ("network", "run_id", "m", "n", "answer", "logit", "is_truth", "is_trained_label")
    data = from_rows(names, rows)
    return Drawing(draw_logits_of_networks(networks, shown), data)


def _two_labels(table: LogitTable) -> Int64Array:
    """Corrupted examples whose drawn label is not the true one by chance."""
    return np.flatnonzero(table.corrupted & (table.label != table.truth)).astype(np.int64)


def _corrupted_logits(result: RunResult) -> tuple[LogitTable, Int64Array]:
    table = measure_logits(result.module(), result.dataset())
    return table, _two_labels(table)


def _two_peaks(result: RunResult) -> float:
    """Of the corrupted examples, how many have the true and the drawn label as their two highest logits."""
    table, chosen = _corrupted_logits(result)
    logits = logits_of(result.module(), table.pairs[chosen])  # [n, p]
    highest = np.sort(np.argsort(logits, axis=1)[:, -2:], axis=1)  # [n, 2]
    own = np.sort(np.stack([table.truth[chosen], table.label[chosen]], axis=1), axis=1)  # [n, 2]
    return float((highest == own).all(axis=1).mean())


def _label_over_truth(result: RunResult) -> float:
    """The mean logit of the drawn label over that of the true one, on corrupted examples."""
    table, chosen = _corrupted_logits(result)
    return float(table.logit_label[chosen].mean() / table.logit_truth[chosen].mean())


def _label_wins(result: RunResult) -> float:
    """On how many corrupted examples the drawn label has the higher logit of the two."""
    table, chosen = _corrupted_logits(result)
    return float((table.logit_label[chosen] > table.logit_truth[chosen]).mean())


def _claim(name: str, paper: str, statement: str, *checks: Check) -> Claim:
    return Claim(name, paper, statement, checks, beside=fig01.specs())


EXPERIMENT = Experiment(
    name="fig23",
    title="Logits of corrupted examples in three phases",
    caption="What the networks of Figure 1 say about the first four corrupted training examples whose drawn label is "
    "not the true one. Green: the true label; pink: the label it was trained on.",
    needs=needs,
    draw=draw,
    claims=(
        _claim(
            "two-peaks",
            "Appendix K, Figure 23",
            "In every phase the true and the drawn label of a corrupted example stand out from all others.",
            *(
                Check(
                    f"examples where they are the top two, wd {spec.optimizer.weight_decay:g}",
                    _two_peaks,
                    low=0.8,
                    of=spec,
                )
                for spec in fig01.specs()
            ),
        ),
        _claim(
            "peaks-decide-phase",
            "Appendix K, Figure 23",
            "The drawn label's logit is the higher of the two without weight decay, similar at 5 and suppressed at 15.",
            Check("examples where the drawn label wins, wd 0", _label_wins, low=0.8, of=fig01.COEXISTENCE),
            Check("examples where the drawn label wins, wd 5", _label_wins, low=0.1, high=0.9, of=fig01.PARTIAL),
            Check("drawn over true logit, wd 5", _label_over_truth, low=0.5, high=1.5, of=fig01.PARTIAL),
            Check("examples where the drawn label wins, wd 15", _label_wins, high=0.1, of=fig01.FULL),
            Check("drawn over true logit, wd 15", _label_over_truth, high=0.5, of=fig01.FULL),
        ),
    ),
)
