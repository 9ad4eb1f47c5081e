"""`python -m benchmarks.unpublished_settings`: what settings that the paper does not state do to single networks.

Transformers, on the networks of Figures 7, 12 and 13: the learning rates of the authors' program, which has one for
each module; as what a tied matrix starts; where dropout acts. Their accuracies are those without dropout and, as the
authors' notebook measures them, with it. And the learning rate of Figure 15. Runs that are in the store, or in
benchmarks/unpublished-settings.csv, are not done again. Writes that file and the tables of docs/settings.md, of as many
runs as are there.
"""

import argparse
import csv
import re
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import torch

from grokscope import RunSpec
from grokscope.arrays import Int64Array
from grokscope.experiments.paper import fig12, fig15
from grokscope.experiments.paper.deep_networks import (
    LESS_TRANSFORMER,
    MODULE_RATES,
    MORE_RATED,
    MORE_TRANSFORMER,
    TRANSFORMER,
)
from grokscope.experiments.paper.fig13 import DROPOUTS
from grokscope.measure import NeuronSpectra
from grokscope.measure.behaviour import Behaviour, behaviour_from
from grokscope.models import Evaluation
from grokscope.notes import note
from grokscope.outputs import write_text
from grokscope.result import RunResult
from grokscope.store import Store
from grokscope.sweeps import Finished, Running, run_all
from grokscope.sweeps.running import available_cores
from grokscope.tables import csv_text
from grokscope.tasks import Inputs

DATA, DOCUMENT = Path("benchmarks/unpublished-settings.csv"), Path("docs/settings.md")
DECAY, RATE = "optimizer.weight_decay", "optimizer.learning_rate"
ALPHA_9 = {"task.data_fraction": 0.9, "task.corruption": 0.1}  # of Figure 13's networks

Networks = list[tuple[str, RunSpec]]  # each with what is special about it


def transformers() -> Iterator[tuple[str, RunSpec]]:
    """With settings of the authors' program."""
    for base in (LESS_TRANSFORMER, MORE_TRANSFORMER):
        yield "one rate, as in Figure 7", base
    for rate, decay in product((0.03, 0.01), (10.0, 5.0, 2.0)):
        yield "a rate for each module", MODULE_RATES.updated({RATE: rate, DECAY: decay})
    for decay in (10.0, 50.0):  # the two weight decays that Figure 7 names, at the rate that the paper states
        yield "a rate for each module", MODULE_RATES.updated({RATE: TRANSFORMER.optimizer.learning_rate, DECAY: decay})
    for what in ("embedding", "unembedding"):
        tied = {"model.tie_weights": True, "model.tied_start": what}
        yield f"tied, starts as {what}", MORE_TRANSFORMER.updated(tied)
    for places, dropout in product(("residual", "everywhere"), DROPOUTS[1:]):
        where = "in two places" if places == "residual" else places
        changed = {**ALPHA_9, "model.dropout": dropout, "model.dropout_places": places}
        yield f"dropout {dropout:g} {where}", LESS_TRANSFORMER.updated(changed)
    # Figures 12 and 13 with the rates that show what Figure 7(a) does.
    for heads, shape in product(fig12.HEADS, fig12.SHAPES):
        if (heads, shape) != (4, "1 layer"):  # which is above
            rated = fig12.spec(heads, shape, MORE_RATED)
            start = {"model.tied_start": "unembedding"} if rated.value_of("model.tie_weights") else {}
            yield f"a rate for each module, {heads} heads, {shape}", rated.updated(start)
    for decay, dropout in product((2.0, 10.0), DROPOUTS):
        changed = {**ALPHA_9, "model.dropout": dropout, DECAY: decay}
        yield f"a rate for each module, dropout {dropout:g}", MODULE_RATES.updated(changed)


def deep_networks() -> Iterator[tuple[str, RunSpec]]:
    """Figure 15's, at other learning rates."""
    for rate, seed in product((0.0005, 0.001, 0.002, 0.005), range(3)):
        yield f"seed {seed}", fig15.SPEC.updated({RATE: rate, "training.seed": seed})


def with_dropout(result: RunResult) -> Behaviour:
    """What a network says in train mode, with dropout drawn once for each example."""
    module, dataset = result.to_torch().train(), result.dataset()
    torch.manual_seed(result.spec.training.seed)

    def said(inputs: Inputs, labels: Int64Array) -> Evaluation:
        with torch.no_grad():
            logits = module(torch.tensor(inputs))
            losses = torch.nn.functional.cross_entropy(logits, torch.tensor(labels), reduction="none")
        return Evaluation(logits.argmax(dim=1).numpy(), losses.double().numpy())

    return behaviour_from(
        said(dataset.train_inputs, dataset.train_labels), said(dataset.test_inputs, dataset.test_labels), dataset
    )


def row(figure: str, setting: str, result: RunResult) -> dict[str, Any]:
    """A line of the data."""
    last, spec = result.final, result.spec
    dropped = with_dropout(result) if spec.model.dropout_probability else None
    return {
        "about": figure,
        "setting": setting,
        "learning_rate": spec.optimizer.learning_rate,
        "weight_decay": spec.optimizer.weight_decay,
        "phase": result.outcome,
        "train": last.train_accuracy,
        "corrupted": last.corrupted_accuracy,
        "test": last.test_accuracy,
        "train_with_dropout": dropped and dropped.train_accuracy,
        "corrupted_with_dropout": dropped and dropped.corrupted_accuracy,
        "ipr": last.mean_ipr,
        "input_correlation": _correlation(result.neurons),
        "output_correlation": _correlation(result.outputs),
        "run_id": result.run_id,
    }


def _correlation(neurons: NeuronSpectra | None) -> float | None:
    """Of |γ| with the IPR, where there is a norm."""
    found = None if neurons is None else neurons.norm_correlation
    return None if found is None or found != found else found


COLUMNS = {
    "Transformers": ("setting", "learning_rate", "weight_decay", "phase", "train", "corrupted", "test",
                     "train_with_dropout", "corrupted_with_dropout", "ipr"),
    "Figure 15": ("learning_rate", "setting", "phase", "train", "corrupted", "test", "input_correlation",
                  "output_correlation"),
}  # fmt: skip


def main() -> None:
    """Train what is missing, then write what is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=Path("grokscope-runs"))
    parser.add_argument("--workers", type=int, default=available_cores())
    parser.add_argument("--no-training", action="store_true", help="only write what is in the store")
    chosen = parser.parse_args()
    scans: dict[str, Networks] = {"Figure 15": list(deep_networks()), "Transformers": list(transformers())}
    known = recorded_rows()
    if not chosen.no_training:
        specs = [spec for networks in scans.values() for _, spec in networks if spec.run_id not in known]
        with closing(run_all(specs, chosen.store, Running(workers=chosen.workers, weights=True))) as events:
            for number, event in enumerate((event for event in events if isinstance(event, Finished)), 1):
                note(f"{number} of {len(specs)}: run {specs[event.index].run_id}, {event.phase}")
    rows: list[dict[str, Any]] = []
    with Store(chosen.store, create=False) as store:
        for figure, networks in scans.items():
            own = []
            for setting, spec in networks:
                if not store.without_weights([spec.run_id]):
                    own.append(row(figure, setting, store.load(spec.run_id)))
                elif spec.run_id in known:
                    own.append(known[spec.run_id])
            document(figure, own, missing=len(networks) - len(own))
            rows += own
    if rows:
        write_text(DATA, csv_text({name: [each[name] for each in rows] for name in rows[0]}))


def recorded_rows() -> dict[str, dict[str, Any]]:
    """The lines that were written before, by run."""
    if not DATA.exists():
        return {}
    words = ("about", "setting", "phase", "run_id")
    with DATA.open(encoding="utf-8", newline="") as file:
        return {
            line["run_id"]: {
                name: text if name in words else float(text) if text else None for name, text in line.items()
            }
            for line in csv.DictReader(file)
        }


def document(figure: str, rows: list[dict[str, Any]], missing: int) -> None:
    """Replace what stands between the marks."""
    names = COLUMNS[figure]
    table = [f"| {' | '.join(name.replace('_', ' ') for name in names)} |", "|---" * len(names) + "|"]
    table += [f"| {' | '.join(_shown(each[name]) for name in names)} |" for each in rows]
    if missing:
        table += ["", f"{missing} networks of this table are not run yet."]
    marked = re.compile(rf"(<!-- {figure} -->\n).*?(<!-- end -->)", re.DOTALL)
    text = DOCUMENT.read_text(encoding="utf-8")
    write_text(DOCUMENT, marked.sub(lambda match: match[1] + "\n".join([*table, ""]) + match[2], text))


def _shown(value: object) -> str:
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
