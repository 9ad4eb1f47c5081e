"""What the page shows of a network whose weights were kept: its neurons, pruning, logits and suspicious labels.

result = network_of(store, "41630c9a5be1d27f")
network_view(result).pruning.orders[0].test_accuracy
"""

from collections.abc import Iterator

import numpy as np

from grokscope.arrays import FloatArray
from grokscope.errors import GrokscopeError
from grokscope.explorer import models as m
from grokscope.explorer.numbers import numbers, rounded
from grokscope.explorer.runs import neurons_view
from grokscope.measure import (
    ORDERS,
    NeuronWaves,
    audit_labels,
    logits_of,
    measure_logits,
    neuron_waves,
    pruning_curves,
    pruning_orders,
    random_order,
)
from grokscope.measure.logits import PARTS
from grokscope.measure.spectra.waves import phase_relation, why_no_relation
from grokscope.result import RunResult
from grokscope.store import Store

EXAMPLES = 12  # corrupted examples whose logits are shown
SUSPECTS = 50
_BARS = 60


def network_of(store: Store, run_id: str) -> RunResult:
    """The run with its weights. Refuses a user's own code: looking at a store never imports what is in it."""
    result = store.load(run_id)
    if result.spec.code():
        raise GrokscopeError(
            f"run {result.run_id} uses code of its own ({result.spec.code()[0]}), which a look at a store does not "
            "import; `grokscope prune`, `spectrum`, `logits` and `audit` do"
        )
    if result.status == "diverged":
        raise GrokscopeError(f"run {result.run_id} diverged at step {result.diverged_step}, so it has no network")
    result.trained_weights()
    return result


def network_view(result: RunResult) -> m.NetworkView:
    """Everything at once, but single neurons."""
    return m.NetworkView(
        neurons=neurons_view(result.neurons, result) if result.neurons is not None else None,
        phases=phases_view(result) if result.neurons is not None else None,
        pruning=pruning_view(result),
        logits=logits_view(result),
        audit=audit_view(result),
    )


def neuron_view(result: RunResult, neuron: int) -> m.NeuronView:
    """The vectors of one neuron, and the amplitude of every wave in them."""
    waves = neuron_waves(result.spec.model, result.trained_weights(), result.spec.task)
    if not 0 <= neuron < len(waves.neurons):
        raise GrokscopeError(f"there is no neuron {neuron}: they are 0 … {len(waves.neurons) - 1}")
    return _neuron(waves, neuron, digits=5)


def neuron_views(result: RunResult) -> Iterator[m.NeuronView]:
    """All neurons, with the digits that can be seen; nothing if the task has no waves."""
    if result.neurons is not None:
        waves = neuron_waves(result.spec.model, result.trained_weights(), result.spec.task)
        yield from (_neuron(waves, neuron, digits=3) for neuron in range(len(waves.neurons)))


def _neuron(waves: NeuronWaves, neuron: int, digits: int) -> m.NeuronView:
    own = waves.neurons.stacked()[:, neuron]  # [V, symbols]
    amplitudes = np.abs(waves.waves.coefficients(own))  # [V, K]
    names = [str(waves.frequency_of(wave)) for wave in range(amplitudes.shape[1])]
    wave = int(waves.wave[neuron])
    return m.NeuronView(
        neuron=neuron,
        ipr=rounded(float(waves.spectra.neuron_ipr[neuron])),
        wave=names[wave] if wave >= 0 else None,
        frequency=names,
        residual=rounded(float(waves.residual[neuron]), digits),
        vectors=[
            m.VectorView(
                name=letter.upper(),
                values=numbers(vector, digits),
                amplitude=numbers(amplitude, digits),
                phase=rounded(float(phase), digits),
            )
            for letter, vector, amplitude, phase in zip(
                waves.vectors, own, amplitudes, waves.phase[:, neuron], strict=True
            )
        ],
    )


def phases_view(result: RunResult) -> m.PhasesView:
    """The phases of the input vectors of every neuron together, and that of its output vector."""
    waves = neuron_waves(result.spec.model, result.trained_weights(), result.spec.task)
    if reason := why_no_relation(waves):
        return m.PhasesView(
            relation="",
            input_sum=[],
            output=[],
            mean_residual=None,
            periodic=0,
            unavailable=f"No phase relation: {reason}.",
        )
    output = waves.phase[waves.vectors.index("w")]
    together = np.angle(np.exp(1j * (waves.residual + output)))
    return m.PhasesView(
        relation=phase_relation(waves.waves),
        input_sum=numbers(together, 4),
        output=numbers(output, 4),
        mean_residual=rounded(waves.summary(waves.high).mean_residual),
        periodic=int(waves.high.sum()),
        unavailable=None,
    )


def pruning_view(result: RunResult) -> m.PruningView:
    """Accuracies as neurons go, in every order; of random orders one, so that the order is known too."""
    model, weights, dataset = result.spec.model, result.trained_weights(), result.dataset()
    if reason := model.why_not_prunable():
        return m.PruningView(orders=[], unavailable=reason)
    orders = pruning_orders(model, weights, dataset.task)
    orders["random"] = random_order(len(model.prunable_neurons(weights)), 0)
    curves = pruning_curves(weights, model, dataset, list(orders.values()), result.spec.training.loss)
    return m.PruningView(
        orders=[
            m.OrderView(
                name=name,
                label=ORDERS[name],
                order=order.tolist(),
                train_accuracy=numbers(curve.train_accuracy, 4),
                test_accuracy=numbers(curve.test_accuracy, 4),
                corrupted_accuracy=numbers(curve.corrupted_accuracy, 4),
                recovered_accuracy=numbers(curve.recovered_accuracy, 4),
            )
            for (name, order), curve in zip(orders.items(), curves, strict=True)
        ],
        unavailable=None,
    )


def logits_view(result: RunResult) -> m.LogitsView:
    """The logits of some corrupted examples with a wrong label, and the margins of all examples."""
    dataset, network = result.dataset(), result.module()
    table = measure_logits(network, dataset, result.spec.training.loss)
    wrong = np.flatnonzero(table.corrupted & (table.label != table.truth))[:EXAMPLES]
    logits = logits_of(network, table.pairs[wrong]) if len(wrong) else np.empty((0, dataset.classes))
    parts = {part: table.margins(part) for part in PARTS}
    edges = _edges(np.concatenate(list(parts.values())))
    return m.LogitsView(
        examples=[
            m.ExampleView(
                inputs=table.pairs[at].tolist(),
                part="corrupted",
                label=int(table.label[at]),
                truth=int(table.truth[at]),
                predicted=int(table.predicted[at]),
                logits=numbers(own, 4),
            )
            for at, own in zip(wrong, logits, strict=True)
        ],
        symbols=(table.pairs.max(axis=0) + 1).tolist(),
        edges=[float(edge) for edge in edges],
        margins={part: np.histogram(margins, edges)[0].tolist() for part, margins in parts.items()},
        won={part: rounded(float((margins > 0).mean())) if len(margins) else None for part, margins in parts.items()},
    )


def example_view(result: RunResult, inputs: list[int]) -> m.ExampleView:
    """What the network says about one example."""
    data = result.dataset()
    known = np.concatenate([data.train_inputs, data.test_inputs])  # [n, positions]
    places = np.flatnonzero((known == inputs).all(axis=1)) if len(inputs) == known.shape[1] else np.empty(0, np.int64)
    if not len(places):
        raise GrokscopeError(f"there is no example {tuple(inputs)} in the task {data.task.describe()}")
    at, trained = int(places[0]), int(places[0]) < len(data.train_labels)
    logits = logits_of(result.module(), known[at : at + 1])[0]
    return m.ExampleView(
        inputs=inputs,
        part="test" if not trained else "corrupted" if data.corrupted[at] else "clean",
        label=int(np.concatenate([data.train_labels, data.test_labels])[at]),
        truth=int(np.concatenate([data.train_truth, data.test_labels])[at]),
        predicted=int(logits.argmax()),
        logits=numbers(logits, 4),
    )


def _edges(margins: FloatArray) -> FloatArray:
    """Of bars that hold all margins but the outermost thousandths, which would make the others narrow."""
    low, high = np.percentile(margins, (0.1, 99.9)) if len(margins) else (-1.0, 1.0)
    edges: FloatArray = np.linspace(float(low), float(high if high > low else low + 1), _BARS + 1).round(5)
    return edges


def audit_view(result: RunResult) -> m.AuditView:
    """The labels that the network finds most suspicious."""
    audit = audit_labels(result.spec, result.trained_weights(), result.dataset())
    data, score = audit.dataset, audit.scores[audit.ranked_by]
    predicted = audit.predicted if audit.pruned_predicted is None else audit.pruned_predicted
    pruned = f" Pruned: {audit.pruning.describe()}." if audit.pruning is not None else ""
    return m.AuditView(
        words=f"{int(audit.wrong.sum())} of {len(audit.wrong)} training labels are wrong.{pruned}",
        ranked_by=audit.ranked_by.replace("_", " "),
        auroc=rounded(score.auroc),
        wrong=int(audit.wrong.sum()),
        examples=len(audit.wrong),
        suspects=[
            m.SuspectView(
                inputs=data.train_inputs[at].tolist(),
                label=int(data.train_labels[at]),
                predicted=int(predicted[at]),
                truth=int(data.train_truth[at]),
                score=float(f"{score.values[at]:.4g}"),
            )
            for at in audit.most_suspicious()[:SUSPECTS].tolist()
        ],
    )
