import math

import numpy as np
import pytest
import torch

import grokscope as gs


def test_the_same_spec_gives_bit_identical_results_twice(tiny: gs.RunSpec) -> None:
    spec = tiny.updated({"model.dropout": 0.2, "training.batch_size": 16})
    first, second = gs.run(spec), gs.run(spec)
    assert first.curve == second.curve
    assert first.weights is not None
    assert second.weights is not None
    for name, array in first.weights.items():
        np.testing.assert_array_equal(array, second.weights[name])


def test_results_do_not_depend_on_the_number_of_threads(tiny: gs.RunSpec) -> None:
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = gs.run(tiny)
        torch.set_num_threads(2)
        two = gs.run(tiny)
    finally:
        torch.set_num_threads(threads)
    assert one.curve == two.curve


def test_a_curve_has_a_row_for_each_measured_step(tiny: gs.RunSpec) -> None:
    seen: list[gs.Row] = []
    result = gs.run(tiny, on_measurement=lambda row, _: seen.append(row))
    assert [row.step for row in result.curve] == tiny.training.measured_steps()
    assert tuple(seen) == result.curve


def test_the_history_of_the_ipr_counts_the_neurons_in_every_row(tiny: gs.RunSpec) -> None:
    iprs: list[list[float]] = []

    def keep(_: gs.Row, moment: gs.Moment) -> None:
        assert moment.spectra is not None
        iprs.append(moment.spectra.neuron_ipr[~moment.spectra.dead].tolist())

    history = gs.run(tiny, on_measurement=keep).ipr_history
    assert history is not None
    assert len(history) == len(iprs)
    for counts, own in zip(history.tolist(), iprs, strict=True):
        assert counts == [sum(k <= 50 * ipr < k + 1 or (k == 49 and ipr >= 1) for ipr in own) for k in range(50)]


def test_accuracies_fit_together(tiny: gs.RunSpec) -> None:
    """Training accuracy is the mean of the corrupted and the clean part, and the module agrees with the curve."""
    result = gs.run(tiny)
    dataset, row = result.dataset(), result.final
    share = dataset.corrupted.mean()
    assert row.train_accuracy == pytest.approx(share * row.corrupted_accuracy + (1 - share) * row.clean_accuracy)
    with torch.no_grad():
        predictions = result.module()(torch.tensor(dataset.train_inputs)).argmax(dim=1).numpy()
    assert row.train_accuracy == pytest.approx((predictions == dataset.train_labels).mean())
    recovered = (predictions == dataset.train_truth)[dataset.corrupted].mean()
    assert row.recovered_accuracy == pytest.approx(recovered)
    assert result.weights is not None
    assert row.norm_w == pytest.approx(np.linalg.norm(result.weights["W"]), rel=1e-6)


def test_the_train_loss_is_the_one_the_step_was_taken_on(tiny: gs.RunSpec) -> None:
    result = gs.run(tiny)
    network = gs.initial_weights(tiny.model, 11)
    dataset = result.dataset()
    hidden = network["U"][:, dataset.train_inputs[:, 0]] + network["V"][:, dataset.train_inputs[:, 1]]
    residual = (network["W"] @ hidden**2).T - np.eye(11)[dataset.train_labels]
    assert result.curve[0].train_loss == pytest.approx((residual**2).mean(), rel=1e-5)


def test_without_corruption_there_is_no_corrupted_accuracy(tiny: gs.RunSpec) -> None:
    result = gs.run(tiny.updated({"task.corruption": 0.0}))
    assert math.isnan(result.final.corrupted_accuracy)
    assert math.isnan(result.final.recovered_accuracy)
    assert result.final.clean_accuracy == result.final.train_accuracy
    final = result.to_dict()["final"]
    assert isinstance(final, dict)
    assert final["corrupted_accuracy"] is None


def test_with_every_label_corrupted_there_is_no_clean_accuracy(tiny: gs.RunSpec) -> None:
    assert math.isnan(gs.run(tiny.updated({"task.corruption": 1.0})).final.clean_accuracy)


def test_a_run_that_diverges_says_when(tiny: gs.RunSpec) -> None:
    result = gs.run(tiny.updated({"optimizer.learning_rate": 1e20}))
    assert result.status == "diverged"
    assert result.phase is None
    assert result.diverged_step == 2
    assert "step 2" in result.describe()
    assert len(result.curve) == 1


def test_a_run_that_diverges_in_its_last_step_says_so_too(tiny: gs.RunSpec) -> None:
    result = gs.run(tiny.updated({"optimizer.learning_rate": 1e20, "training.steps": 1}))
    assert (result.status, result.phase, result.diverged_step) == ("diverged", None, 1)


def test_the_spectra_of_every_measured_step_can_be_had(tiny: gs.RunSpec) -> None:
    means: list[float] = []

    def keep(row: gs.Row, moment: gs.Moment) -> None:
        assert moment.spectra is not None
        means.append(moment.spectra.mean_ipr)

    result = gs.run(tiny, on_measurement=keep)
    assert means == [row.mean_ipr for row in result.curve]


@pytest.mark.parametrize("operation", ["add", "subtract", "multiply", "divide", "x2+y2", "x2+xy+y2"])
def test_every_operation_runs(tiny: gs.RunSpec, operation: str) -> None:
    result = gs.run(tiny.updated({"task.operation": operation}))
    assert 0 < result.final.mean_ipr <= 1


@pytest.mark.parametrize("modulus", [2, 3, 4, 15, 24])
@pytest.mark.parametrize("operation", ["add", "multiply"])
def test_every_modulus_runs(tiny: gs.RunSpec, modulus: int, operation: str) -> None:
    result = gs.run(tiny.updated({"task.modulus": modulus, "task.operation": operation}))
    assert result.status == "finished"


def test_describe_says_nothing_of_wrong_labels_where_there_are_none(tiny: gs.RunSpec) -> None:
    text = gs.run(tiny.updated({"task.corruption": 0.0})).describe()
    assert "corrupt" not in text
    assert "wrong" not in text


def test_describe_is_plain_words(tiny: gs.RunSpec) -> None:
    result = gs.run(tiny)
    assert result.phase is not None
    text = result.describe()
    assert text.startswith(result.phase.label)
    assert "After 30 steps" in text
    assert "\n" not in text


def test_rows_have_the_documented_columns(tiny: gs.RunSpec) -> None:
    columns = set(gs.run(tiny).final)
    assert columns >= {
        "step", "train_loss", "test_loss", "train_accuracy", "test_accuracy", "corrupted_accuracy", "clean_accuracy",
        "recovered_accuracy", "mean_ipr", "norm_u", "norm_v", "norm_w",
    }  # fmt: skip
