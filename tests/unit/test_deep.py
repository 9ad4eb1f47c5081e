"""What is measured of Transformers and deep MLPs, and how much smaller they are at the quick scale."""

import math
from dataclasses import replace

import pytest

from grokscope.experiments.paper.deep_networks import DEEP_MLP, MORE_MLP, MORE_TRANSFORMER, TRANSFORMERS
from grokscope.experiments.quantities.deep import (
    both_high,
    ipr_growth,
    ipr_ratio,
    most_memorised,
    output_ipr,
    steps_to_unlearning,
    train_before_grokking,
)
from grokscope.experiments.scale import MIXED, PAPER, QUICK
from grokscope.measure import Row
from grokscope.result import RunResult
from grokscope.spec import RunSpec
from grokscope.training import execute

STAGES = [  # step, train, test, corrupted: it memorises, finds the rule, and unlearns
    (1, 0.01, 0.01, 0.01),
    (100, 0.97, 0.10, 0.95),
    (200, 0.96, 0.92, 0.85),
    (300, 0.82, 1.00, 0.05),
]


@pytest.fixture(scope="module")
def trained() -> RunResult:
    fields = {"task.modulus": 7, "model.width": 8, "model.depth": 3, "training.steps": 1}
    return execute(RunSpec().updated(fields))


def with_curve(result: RunResult, rows: list[tuple[int, float, float, float]]) -> RunResult:
    curve = tuple(
        Row(
            {
                **result.final,
                "step": step,
                "train_accuracy": train,
                "test_accuracy": test,
                "corrupted_accuracy": corrupted,
                "mean_ipr": 0.04 * (1 + place),
            }
        )
        for place, (step, train, test, corrupted) in enumerate(rows)
    )
    return replace(result, curve=curve)


def test_the_stages_of_a_curve(trained: RunResult) -> None:
    result = with_curve(trained, STAGES)
    assert train_before_grokking(result) == 0.97
    assert both_high(result) == 0.92
    assert steps_to_unlearning(result) == 100
    assert most_memorised(result) == 0.95
    assert ipr_growth(result) == pytest.approx(4)


def test_a_curve_without_stages(trained: RunResult) -> None:
    result = with_curve(trained, STAGES[:2])
    assert math.isnan(train_before_grokking(result))
    assert math.isnan(steps_to_unlearning(result))
    assert both_high(result) == 0.10


def test_only_deep_networks_have_an_output_of_their_own(trained: RunResult) -> None:
    assert 0 < output_ipr(trained) <= 1
    assert math.isnan(output_ipr(replace(trained, outputs=None)))


def test_deep_networks_are_smaller_at_quick_scale_alone_or_in_diagrams() -> None:
    alone = QUICK.network(MORE_TRANSFORMER)
    assert (alone.task.modulus, alone.model.embed, alone.training.steps) == (47, 64, 2000)
    cell = next(iter(QUICK.diagram(TRANSFORMERS).specs()))
    assert (cell.task.modulus, cell.model.embed, cell.training.steps) == (47, 64, 2000)
    assert QUICK.network(MORE_MLP).optimizer.weight_decay == 2.5 * MORE_MLP.optimizer.weight_decay
    assert PAPER.network(MORE_MLP) == MORE_MLP


def test_deep_networks_are_the_papers_at_mixed_scale_where_they_stand_alone() -> None:
    for spec in (MORE_TRANSFORMER, MORE_MLP):
        assert MIXED.network(spec) == spec
    of_mixed, of_quick = (list(scale.diagram(TRANSFORMERS).specs()) for scale in (MIXED, QUICK))
    assert of_mixed == of_quick


def test_networks_that_cost_little_stay_as_they_are() -> None:
    in_batches = DEEP_MLP.updated({"training.batch_size": 64})
    assert QUICK.network(in_batches) == in_batches
    assert QUICK.network(RunSpec()) == RunSpec()


def test_embeddings_are_compared_of_networks_that_generalise(trained: RunResult) -> None:
    def ending(mean_ipr: float, test_accuracy: float) -> RunResult:
        row = Row({**trained.final, "mean_ipr": mean_ipr, "test_accuracy": test_accuracy})
        return replace(trained, curve=(row,))

    assert ipr_ratio(ending(0.4, 0.95), ending(0.2, 0.9)) == 2
    assert math.isnan(ipr_ratio(ending(0.4, 0.95), ending(0.2, 0.5)))
    assert math.isnan(ipr_ratio(ending(0.4, 0.5), ending(0.2, 0.95)))
