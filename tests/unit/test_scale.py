"""Scales reduce the paper's runs, and say so in names and flags."""

import pytest

from grokscope.errors import GrokscopeError
from grokscope.experiments.catalogue import EXPERIMENTS
from grokscope.experiments.paper.fig03 import WEIGHT_DECAY
from grokscope.experiments.scale import MIXED, PAPER, QUICK, TINY, scales_of
from grokscope.spec import RunSpec
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.plan import Plan


def test_the_papers_scale_changes_nothing() -> None:
    assert PAPER.diagram(WEIGHT_DECAY) == WEIGHT_DECAY
    assert PAPER.network(RunSpec()) == RunSpec()
    assert PAPER.seed_count(40) == 40


def test_quick_keeps_single_networks_and_makes_diagrams_small() -> None:
    assert QUICK.network(RunSpec()) == RunSpec()
    plan = QUICK.diagram(WEIGHT_DECAY)
    assert plan.name == "fig3a-quick"
    assert [len(axis) for axis in plan.axes] == [5, 5, 4]
    assert (plan.base.task.modulus, plan.base.model.width) == (59, 300)
    assert [point[0] for point in plan.axes[0].points] == [0.1, 0.3, 0.5, 0.7, 0.9]
    assert QUICK.seed_count(40) == 1


def test_a_seed_is_counted_from_the_specs_own() -> None:
    assert QUICK.network(RunSpec(), seed=2).training.seed == 2
    assert QUICK.network(RunSpec().updated({"training.seed": 5}), seed=2).training.seed == 7
    assert QUICK.network(RunSpec(), seed=0).run_id == RunSpec().run_id


def test_reducing_makes_possible_runs() -> None:
    """Batches fit into small training sets, operands into a small modulus, and fields of other networks stay away."""
    batches = RunSpec().updated({"task.data_fraction": 0.1, "training.batch_size": 256})
    assert TINY.network(batches).training.batch_size == 32
    operands = RunSpec().updated({"task.corrupted_operands": (3, 22, 23, 96)})
    assert TINY.network(operands).task.corrupted_operands == (3, 22)
    transformer = TINY.network(RunSpec().updated({"model.kind": "transformer", "model.heads": 8}))
    assert (transformer.model.embed, transformer.has("model.width")) == (16, False)


def test_points_that_become_the_same_are_one() -> None:
    plan = Plan("widths", axes=(Axis(("task.modulus",), ((23,), (47,), (97,))),))
    assert TINY.diagram(plan).axes[0].points == ((23,),)


def test_a_grid_that_was_asked_for_is_in_the_name_and_in_the_flags() -> None:
    (scale,) = scales_of("paper", grid="5x7", seeds=2)
    assert scale.diagram(WEIGHT_DECAY).name == "fig3a-5x7"
    assert scale.flags() == " --scale paper --grid 5x7 --seeds 2"
    assert QUICK.flags() == " --scale quick"
    assert scale.seed_count(3) == 2


def test_flags_give_the_scale_back() -> None:
    for scale in ("tiny", "quick", "mixed", "paper"):
        for grid in (None, "3x3", "5x5"):
            for seeds in (None, 1, 2):
                (changed,) = scales_of(scale, grid=grid, seeds=seeds)
                words = changed.flags().split()
                flags = dict(zip(words[::2], words[1::2], strict=True))
                again = scales_of(
                    flags["--scale"],
                    grid=flags.get("--grid"),
                    seeds=int(flags["--seeds"]) if "--seeds" in flags else None,
                )
                assert again == [changed]


def test_what_best_falls_back_to_is_quick_as_it_was_asked_for() -> None:
    assert scales_of("best") == [PAPER, MIXED, QUICK]
    asked = [scale for name in ("paper", "mixed", "quick") for scale in scales_of(name, grid="3x3", seeds=2)]
    assert scales_of("best", grid="3x3", seeds=2) == [PAPER, *asked]


def test_diagrams_that_differ_have_names_that_differ() -> None:
    seeded = Plan("fig7a", axes=(*WEIGHT_DECAY.axes[:2], Axis(("training.seed",), ((0,), (1,), (2,)))))
    line = Plan("line", axes=(WEIGHT_DECAY.axes[0], Axis(("training.seed",), tuple((i,) for i in range(40)))))

    def name(plan: Plan, scale: str, grid: str | None = None, seeds: int | None = None) -> str:
        return scales_of(scale, grid=grid, seeds=seeds)[0].diagram(plan).name

    assert name(WEIGHT_DECAY, "paper") == name(WEIGHT_DECAY, "paper", "17x19", seeds=2) == "fig3a"
    assert name(WEIGHT_DECAY, "paper", "9x10") == "fig3a-9x10"
    assert name(WEIGHT_DECAY, "quick") == name(WEIGHT_DECAY, "quick", "5x5", seeds=3) == "fig3a-quick"
    assert name(WEIGHT_DECAY, "tiny") == "fig3a-tiny"
    assert name(WEIGHT_DECAY, "quick", "3x3") == "fig3a-quick-3x3"
    assert name(seeded, "paper", seeds=1) == "fig7a-seeds1"
    assert name(seeded, "paper", seeds=2) == "fig7a-seeds2"
    assert name(seeded, "paper", "9x10", seeds=2) == "fig7a-9x10-seeds2"
    assert name(seeded, "quick", seeds=1) == "fig7a-quick"
    assert name(line, "quick", "3x3") == "line-quick"
    assert name(line, "quick", seeds=1) == "line-quick-seeds1"


def test_a_grid_is_never_finer_than_the_papers() -> None:
    (scale,) = scales_of("paper", grid="99x99")
    assert [len(axis) for axis in scale.diagram(WEIGHT_DECAY).axes] == [17, 19, 4]


@pytest.mark.parametrize("grid", ["5", "5x", "x5", "0x5", "1x5", "axb", "5x5x5", "-5x5"])
def test_a_grid_is_two_numbers(grid: str) -> None:
    with pytest.raises(GrokscopeError, match="two numbers"):
        scales_of("quick", grid=grid)


def test_an_unknown_scale_names_the_known_ones() -> None:
    with pytest.raises(GrokscopeError, match="tiny, quick, mixed, paper, best"):
        scales_of("full")


@pytest.mark.parametrize("name", ["fig13", "fig32", "beyond-modulus", "beyond-prunable"])
def test_fewer_seeds_and_cells_of_the_papers_scale_keep_its_sizes_and_panels(name: str) -> None:
    needs = EXPERIMENTS[name].needs
    (fewer,) = scales_of("paper", grid="5x5", seeds=1)
    assert needs(fewer) == needs(PAPER)
    assert needs(fewer) != needs(QUICK)
