"""Which labels networks of the paper's size find suspicious: the numbers of docs/audit.md."""

import pytest

from grokscope import Audit, RunSpec, audit_labels, run

pytestmark = pytest.mark.verify


def audited(**fields: object) -> Audit:
    result = run(RunSpec().updated(fields))
    return audit_labels(result.spec, result.trained_weights(), result.dataset())


def test_coexistence_hides_wrong_labels_in_its_answers_and_tells_them_by_its_margins() -> None:
    audit = audited()
    whole, pruned = audit.scores["margin"], audit.scores["pruned_margin"]
    assert whole.answers.recall == pytest.approx(0.045, abs=0.02)
    assert whole.auroc == pytest.approx(0.996, abs=0.003)
    assert whole.r_precision == pytest.approx(0.969, abs=0.01)
    assert audit.pruning is not None
    assert audit.pruning.count == pytest.approx(354, abs=15)
    assert pruned.auroc == pytest.approx(1, abs=0.001)
    assert pruned.answers.precision == pytest.approx(1, abs=0.005)
    assert pruned.answers.recall == pytest.approx(1, abs=0.005)


@pytest.mark.parametrize("fields", [{"model.dropout": 0.3}, {"optimizer.weight_decay": 15.0}])
def test_regularised_networks_tell_all(fields: dict[str, object]) -> None:
    audit = audited(**fields)
    for score in audit.scores.values():
        assert score.auroc == pytest.approx(1, abs=0.001)
    assert audit.scores["pruned_margin"].answers.recall == pytest.approx(1, abs=0.002)


def test_memorisation_tells_nothing() -> None:
    audit = audited(**{"task.data_fraction": 0.2})
    for score in audit.scores.values():
        assert score.auroc == pytest.approx(0.5, abs=0.05)
        assert score.answers.recall == 0
    assert audit.pruning is not None
    assert audit.pruning.count == 0
