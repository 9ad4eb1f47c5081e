"""Figure 3: where in the plane of data fraction and corruption a network does what, as regularisation grows."""

from grokscope.sweep.plan import Axis, Plan

DATA_FRACTIONS = Axis(("task.data_fraction",), tuple((round(0.1 + 0.05 * i, 2),) for i in range(17)))
CORRUPTIONS = Axis(("task.corruption",), tuple((round(0.05 * i, 2),) for i in range(19)))


def weight_decay() -> Plan:
    """Figure 3(a), and with the accuracies Figure 24."""
    return Plan(
        "fig3a", axes=(DATA_FRACTIONS, CORRUPTIONS, Axis(("optimizer.weight_decay",), ((0,), (5,), (15,), (20,))))
    )


def dropout() -> Plan:
    """Figure 3(b), and with the accuracies Figure 25."""
    return Plan("fig3b", axes=(DATA_FRACTIONS, CORRUPTIONS, Axis(("model.dropout",), ((0,), (0.3,), (0.6,), (0.9,)))))
