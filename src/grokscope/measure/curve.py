"""A network that did not come out of a run, measured as if it had."""

from typing import TYPE_CHECKING

from grokscope.measure.measurement import Moment, Row, take_row
from grokscope.models import Loss
from grokscope.tasks import Dataset

if TYPE_CHECKING:
    from grokscope.models.module import NetworkModule


def measure_network(network: "NetworkModule", dataset: Dataset, loss: Loss = "mse") -> Row:
    """Measure the analytic network, or one that was pruned or edited.

    >>> from grokscope import MLP, TaskSpec, analytic_weights, make_dataset
    >>> network = MLP().module(analytic_weights(modulus=97, width=500))
    >>> row = measure_network(network, make_dataset(TaskSpec()))
    >>> row.test_accuracy, round(row.mean_ipr, 6)
    (1.0, 1.0)
    """
    from grokscope.models.module import evaluate

    train = evaluate(network, dataset.train_inputs, dataset.train_labels, loss)
    test = evaluate(network, dataset.test_inputs, dataset.test_labels, loss)
    weights = network.weights()
    return take_row(Moment(0, float(train.losses.mean()), network.network, weights, train, test, dataset))
