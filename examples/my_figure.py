"""A figure of your own: two networks side by side, and two claims about them.

    grokscope figure examples/my_figure.py --scale tiny
    grokscope claims --only examples/my_figure.py --scale tiny

or, from Python, `gs.figure("examples/my_figure.py", scale="tiny")`. Networks are described at full size. A
scale makes them smaller; without --scale they are trained as described, which takes a minute. The store keeps them.
"""

import grokscope as gs
from grokscope.experiments import Check, Claim, Drawing, Evidence, Experiment, Needs, final, final_difference, tables
from grokscope.plots import draw_curves

WITHOUT = gs.RunSpec().updated({"task.data_fraction": 0.5, "task.corruption": 0.2})
WITH = WITHOUT.updated({"optimizer.weight_decay": 10.0})


def draw(evidence: Evidence) -> Drawing:
    """Accuracies during training, one panel for each network."""
    results = {"without weight decay": evidence.network(WITHOUT), "weight decay 10": evidence.network(WITH)}
    return Drawing(draw_curves(list(results.values()), list(results)), tables.curves(results))


EXPERIMENT = Experiment(
    name="my-figure",
    title="What weight decay does to wrong labels",
    caption="Accuracies during training with a fifth of the labels corrupted, without weight decay and with.",
    needs=lambda scale: Needs(networks=(WITHOUT, WITH)),
    draw=draw,
    claims=(
        Claim(
            "my-rule-found",
            "mine",
            "Both networks find the rule although a fifth of their labels are wrong.",
            (
                Check("test accuracy without weight decay", final("test_accuracy"), low=0.9, of=WITHOUT),
                Check("test accuracy with weight decay", final("test_accuracy"), low=0.9, of=WITH),
            ),
            seeds=2,
        ),
        Claim(
            "my-decay-unlearns",
            "mine",
            "Weight decay makes the network ignore most of the wrong labels.",
            (
                Check(
                    "corrupted accuracy, without minus with",
                    final_difference("corrupted_accuracy"),
                    low=0.5,
                    of=(WITHOUT, WITH),
                ),
            ),
            seeds=2,
        ),
    ),
)
