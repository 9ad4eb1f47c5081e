"""`python -m benchmarks.transformer_settings`: what settings that the paper does not state do to single Transformers.

Each is scanned on the networks of Figures 7, 12 and 13 (p = 97, d = 128, 3000 steps, one seed): the learning rates of
the authors' program, which has one for each module; as what a tied matrix starts; where dropout acts. Accuracies are
those without dropout and, as the authors' notebook measures them, with it. Runs that are in the store are not done
again. Writes docs/data/transformer-settings.csv and the table of docs/networks.md, of as many runs as are there.
"""

import argparse
import re
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import torch

from grokscope import RunSpec
from grokscope.arrays import Int64Array
from grokscope.experiments.paper.fig07 import LESS_TRANSFORMER, MORE_TRANSFORMER, TRANSFORMER
from grokscope.experiments.paper.fig13 import DROPOUTS
from grokscope.measure.behaviour import Behaviour, behaviour_from
from grokscope.models import Evaluation
from grokscope.notes import note
from grokscope.outputs import write_text
from grokscope.result import RunResult
from grokscope.store import Store
from grokscope.sweeps import Running, run_all
from grokscope.sweeps.running import available_cores
from grokscope.tables import csv_text
from grokscope.tasks import Inputs

TABLE, DOCUMENT = Path("docs/data/transformer-settings.csv"), Path("docs/networks.md")
DECAY, RATE = "optimizer.weight_decay", "optimizer.learning_rate"
AS_THE_AUTHORS = {"model.module_rates": True, "model.scaling": "d", "optimizer.decay_embeddings": False}
ALPHA_9 = {"task.data_fraction": 0.9, "task.corruption": 0.1}  # of Figure 13's networks


def settings() -> Iterator[tuple[str, RunSpec]]:
    """Each network with what is special about it."""
    yield "one rate, as in Figure 7", LESS_TRANSFORMER
    yield "one rate, as in Figure 7", MORE_TRANSFORMER
    for rate, decay in product((0.03, 0.01), (10.0, 5.0, 2.0)):
        yield "a rate for each module", TRANSFORMER.updated({**AS_THE_AUTHORS, RATE: rate, DECAY: decay})
    for decay in (10.0, 50.0):  # the two weight decays that Figure 7 names, at the rate that the paper states
        yield "a rate for each module", TRANSFORMER.updated({**AS_THE_AUTHORS, DECAY: decay})
    for start in ("embedding", "unembedding"):
        tied = MORE_TRANSFORMER.updated({"model.tie_weights": True, "model.tied_start": start})
        yield f"tied, starts as {start}", tied
    for places, dropout in product(("residual", "everywhere"), DROPOUTS[1:]):
        where = "in two places" if places == "residual" else places
        changed = {**ALPHA_9, "model.dropout": dropout, "model.dropout_places": places}
        yield f"dropout {dropout:g} {where}", LESS_TRANSFORMER.updated(changed)


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


def row(setting: str, result: RunResult) -> dict[str, Any]:
    """A line of the table."""
    last, dropped, spec = result.final, with_dropout(result), result.spec
    return {
        "setting": setting,
        "learning_rate": spec.optimizer.learning_rate,
        "weight_decay": spec.optimizer.weight_decay,
        "phase": result.outcome,
        "train": last.train_accuracy,
        "corrupted": last.corrupted_accuracy,
        "test": last.test_accuracy,
        "train_with_dropout": dropped.train_accuracy,
        "corrupted_with_dropout": dropped.corrupted_accuracy,
        "ipr_before": result.curve[0].mean_ipr,
        "ipr": last.mean_ipr,
        "run_id": result.run_id,
    }


def main() -> None:
    """Train what is missing, then write what is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=Path("grokscope-runs"))
    parser.add_argument("--workers", type=int, default=available_cores())
    parser.add_argument("--no-training", action="store_true", help="only write what is in the store")
    chosen = parser.parse_args()
    networks = list(settings())
    if not chosen.no_training:
        running = Running(workers=chosen.workers, weights=True)
        with closing(run_all([spec for _, spec in networks], chosen.store, running)) as events:
            for event in events:
                note(str(event))
    with Store(chosen.store, create=False) as store:
        there = [(setting, spec) for setting, spec in networks if not store.without_weights([spec.run_id])]
        rows = [row(setting, store.load(spec.run_id)) for setting, spec in there]
    write_text(TABLE, csv_text({name: [each[name] for each in rows] for name in rows[0]}))
    document(rows, len(networks))


def document(rows: list[dict[str, Any]], planned: int) -> None:
    """Replace what stands between the marks."""
    head = "| setting | rate | decay | phase | train | corrupted | test | train, corrupted with dropout | IPR |"
    lines = [head, "|---|---|---|---|---|---|---|---|---|"]
    for each in rows:
        dropped = f"{each['train_with_dropout']:.3f}, {each['corrupted_with_dropout']:.3f}"
        lines.append(
            f"| {each['setting']} | {each['learning_rate']:g} | {each['weight_decay']:g} | {each['phase']} | "
            f"{each['train']:.3f} | {each['corrupted']:.3f} | {each['test']:.3f} | "
            f"{dropped if 'dropout' in each['setting'] else ''} | {each['ipr']:.3f} |"
        )
    if len(rows) < planned:
        lines += ["", f"{planned - len(rows)} of {planned} networks are not run yet."]
    marked = re.compile(r"(<!-- scan -->\n).*?(<!-- end of scan -->)", re.DOTALL)
    text = DOCUMENT.read_text(encoding="utf-8")
    write_text(DOCUMENT, marked.sub(lambda match: match[1] + "\n".join([*lines, ""]) + match[2], text))


if __name__ == "__main__":
    main()
