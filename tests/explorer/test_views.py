"""What the page shows, with known answers."""

import base64
import gzip
import json
import math
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.explorer.conftest import ALPHAS, XIS, Filled

from grokscope import RunSpec, analytic_weights
from grokscope.errors import GrokscopeError, StoreError
from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.diagrams import drawing_of
from grokscope.experiments.evidence import Needs
from grokscope.experiments.experiment import Experiment
from grokscope.explorer import diagrams, networks, paper, runs, views
from grokscope.explorer.page import files
from grokscope.explorer.report import bundle, write_report
from grokscope.measure import pruning_orders
from grokscope.plots.palette import ACCURACIES
from grokscope.result import analytic_result
from grokscope.store import CellOutcome, Store
from grokscope.sweeps.plan import Plan
from grokscope.training import execute


@pytest.fixture
def store(filled: Filled) -> Store:
    return Store(filled.path, create=False)


def test_sweeps_are_listed_with_their_axes_and_progress(store: Store) -> None:
    (sweep,) = views.sweep_list(store).sweeps
    assert (sweep.name, sweep.cells, sweep.done) == ("small", 12, 10)
    assert sweep.axes == "3 data fraction × 2 corruption × 2 weight decay"


def test_runs_are_listed_newest_first_and_found_by_words_and_conditions(store: Store, filled: Filled) -> None:
    listed = views.run_list(store)
    assert listed.total == 10
    finished = [run.finished_at for run in listed.runs if not run.damaged]
    assert finished == sorted(finished, reverse=True)
    assert [run.run_id for run in listed.runs if run.damaged] == [filled.damaged]
    assert [run.run_id for run in views.run_list(store, filled.with_weights[:6]).runs] == [filled.with_weights]
    assert views.run_list(store, "task.corruption=0.4 optimizer.weight_decay=0").total == 3
    assert views.run_list(store, "100%").total == 0
    assert "did you mean" in str(views.run_list(store, "task.coruption=0.4").problem)
    assert len(views.run_list(store, limit=4, offset=8).runs) == 2


def test_what_people_say_about_a_run_is_shown_and_found(store: Store, filled: Filled) -> None:
    for search in ("baseline", "#good", "tag=für-später", "für-spä", "beside figure"):
        (found,) = views.run_list(store, search).runs
        assert (found.run_id, found.name, found.tags) == (filled.with_weights, "baseline", ["für-später", "good"])
    run = runs.run_view(store, filled.with_weights)
    assert (run.name, run.tags, run.note.splitlines()[0]) == ("baseline", found.tags, "Beside Figure 2.")


def test_a_diagram_has_true_coordinates_and_every_state(store: Store, filled: Filled) -> None:
    view = diagrams.diagram_view(store, "small")
    assert view.columns.numbers == ALPHAS
    assert view.rows is not None
    assert view.rows.numbers == XIS
    assert [panel.title for panel in view.panels] == ["weight decay 0", "weight decay 5"]
    second = view.panels[1]
    assert second.run_ids[5] == [filled.missing]
    assert [seeds[0] for seeds in second.seeds[3:]] == ["failed", "damaged", None]
    assert second.source[3:] == ["failed", "missing", "missing"]
    assert view.panels[0].run_ids[0] == [filled.with_weights]
    found = store.load(filled.with_weights).final
    assert view.panels[0].test_accuracy[0] == pytest.approx(found.test_accuracy, abs=1e-4)


def test_a_running_cell_is_shown_as_running(filled: Filled, tmp_path: Path) -> None:
    store = Store(shutil.copytree(filled.path, tmp_path / "copy"))
    store.lease(filled.missing)
    assert diagrams.diagram_view(store, "small").panels[1].seeds[5] == ["running"]
    assert runs.run_view(store, filled.missing).state == "running"


def test_colours_are_means_over_seeds(tmp_path: Path, tiny: RunSpec) -> None:
    store = Store(tmp_path / "runs")
    plan = Plan.over({"task.corruption": [0, 0.4], "training.seed": [0, 1]}, tiny, "seeds")
    results = [execute(spec) for spec in plan.specs()]
    for result in results:
        store.save(result)
    store.record_sweep("seeds", plan.to_dict(), [result.run_id for result in results], refined=False)
    view = diagrams.diagram_view(store, "seeds")
    assert view.seeds == 2
    assert view.panels[0].run_ids[0] == [results[0].run_id, results[2].run_id]
    mean = (results[0].final.mean_ipr + results[2].final.mean_ipr) / 2
    assert diagrams.color_view(store, "seeds", 0, "mean_ipr").values[0] == pytest.approx(mean, rel=1e-4)
    known: dict[str, float | None] = {}
    assert diagrams.grokked_view(store, "seeds", 0, known, most=3).left == 1
    assert diagrams.grokked_view(store, "seeds", 0, known, most=3).left == 0
    assert diagrams.grokked_view(store, "seeds", 0, known, most=3).values == [None, None]


def test_what_is_not_there_is_an_error_in_words(store: Store) -> None:
    with pytest.raises(StoreError, match="did you mean 'small'"):
        diagrams.diagram_view(store, "smal")
    with pytest.raises(StoreError, match="no panel 2"):
        diagrams.color_view(store, "small", 2, "mean_ipr")


def test_a_run_says_what_became_of_it(store: Store, filled: Filled) -> None:
    assert runs.run_view(store, filled.failed).traceback == "Traceback: on purpose"
    assert runs.run_view(store, filled.missing).state == "missing"
    damaged = runs.run_view(store, filled.damaged)
    assert damaged.state == "damaged"
    assert "has been changed" in damaged.words
    run = runs.run_view(store, filled.with_weights)
    assert run.has_weights
    assert run.neurons is not None
    assert run.neurons.norm is not None
    assert len(run.neurons.norm) == 24
    assert run.curve["step"][-1] == 30
    without = runs.run_view(store, filled.without_weights)
    assert not without.has_weights
    assert without.neurons is not None
    assert without.neurons.norm is None


def test_a_network_without_pruned_neurons_is_the_stored_one(store: Store, filled: Filled) -> None:
    for spec in (filled.specs[place] for place in (0, 3, 4)):
        result = networks.network_of(store, spec.run_id)
        for order in networks.pruning_view(result).orders:
            assert order.train_accuracy[0] == pytest.approx(result.final.train_accuracy, abs=1e-3)
            assert order.test_accuracy[0] == pytest.approx(result.final.test_accuracy, abs=1e-3)


def test_a_copied_spec_is_the_same_run(filled: Filled) -> None:
    import tomllib

    for spec in filled.specs[:3]:
        view = runs.spec_view(spec)
        flags = dict(word.split("=", 1) for word in view.command.split(" --set ")[1:])
        assert RunSpec().updated_from_text(flags).run_id == spec.run_id
        assert RunSpec(**tomllib.loads(view.toml)).run_id == spec.run_id
        inside = view.python.split("updated(", 1)[1].split(")\n", 1)[0]
        assert RunSpec().updated(eval(inside)).run_id == spec.run_id


def test_the_analytic_network_is_taken_apart() -> None:
    result = analytic_result(modulus=23, width=400)
    pruning = networks.pruning_view(result)
    lowest = next(order for order in pruning.orders if order.name == "lowest_ipr")
    assert lowest.test_accuracy[0] == 1
    assert (
        lowest.order
        == pruning_orders(result.spec.model, result.trained_weights(), result.spec.task)["lowest_ipr"].tolist()
    )
    assert len(lowest.test_accuracy) == 401
    neuron = networks.neuron_view(result, 7)
    assert neuron.ipr == pytest.approx(1, abs=1e-4)
    assert [vector.name for vector in neuron.vectors] == ["U", "V", "W"]
    weights = analytic_weights(23, 400)
    assert neuron.vectors[0].values == pytest.approx(weights["U"][7].tolist(), rel=1e-4)
    strongest = [max(range(12), key=lambda wave: vector.amplitude[wave] or 0) for vector in neuron.vectors]
    assert len(set(strongest)) == 1
    waving = next(each for each in map(partial(networks.neuron_view, result), range(400)) if each.residual is not None)
    assert waving.residual == pytest.approx(0, abs=1e-4)
    phases = [vector.phase or 0 for vector in waving.vectors]
    assert math.cos(phases[0] + phases[1] - phases[2]) == pytest.approx(1, abs=1e-3)
    everything = networks.phases_view(result)
    assert (everything.relation, everything.periodic) == ("φ_u + φ_v − φ_w", 400)
    assert everything.mean_residual == pytest.approx(0, abs=1e-4)
    apart = [math.cos((a or 0) - (b or 0)) for a, b in zip(everything.input_sum, everything.output, strict=True)]
    assert min(apart) == pytest.approx(1, abs=1e-5)
    logits = networks.logits_view(result)
    assert logits.symbols == [23, 23]
    assert logits.won["corrupted"] == 1
    assert all(example.predicted == example.truth != example.label for example in logits.examples)
    audit = networks.audit_view(result)
    assert audit.auroc == 1
    assert all(one.label != one.truth for one in audit.suspects)
    with pytest.raises(GrokscopeError, match="0 … 399"):
        networks.neuron_view(result, 400)


def test_any_example_can_be_looked_at() -> None:
    result = analytic_result(modulus=23, width=400)
    data = result.dataset()
    seen = [networks.example_view(result, [first, second]) for first in range(23) for second in (0, 7)]
    for example in seen:
        first, second = example.inputs
        assert example.truth == (first + second) % 23 == example.predicted
        assert example.logits.index(max(value or 0 for value in example.logits)) == example.truth
        inside = (data.train_inputs == example.inputs).all(axis=1)
        assert (example.part == "test") == (not inside.any())
        assert example.label == (data.train_labels[inside][0] if inside.any() else example.truth)
        if inside.any():
            assert (example.part == "corrupted") == bool(data.corrupted[inside][0])
    assert {example.part for example in seen} == {"corrupted", "clean", "test"}
    for nonsense in ([23, 0], [1], [1, 2, 3], []):
        with pytest.raises(GrokscopeError, match="there is no example"):
            networks.example_view(result, nonsense)


def answers_of(report: Path) -> dict[str, Any]:
    packed = report.read_bytes().split(b'id="report-data">', 1)[1].split(b"</script>", 1)[0]
    answers: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed)))
    return answers


def test_a_report_has_the_figures_and_claims_of_its_sweeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = RunSpec().updated({"task.modulus": 7, "model.width": 8, "training.steps": 3})
    plan = Plan.over({"task.data_fraction": [0.4, 0.8], "task.corruption": [0, 0.4]}, tiny, "mine")
    store = Store(tmp_path / "runs")
    for spec in plan.specs():
        store.save(execute(spec))
    store.record_sweep("mine", plan.to_dict(), [spec.run_id for spec in plan.specs()], refined=False)
    check = Check("panels", lambda diagram: len(diagram.panels), low=1, of=plan)
    claim = Claim("two-columns", "nowhere", "It has two columns.", (check,))
    own = Experiment(
        "mine", "A figure", "A caption.", lambda _: Needs(diagrams=(plan,)), drawing_of(plan), claims=(claim,)
    )
    other = Experiment("other", "Another", "", lambda _: Needs(networks=(tiny,)), drawing_of(plan))
    monkeypatch.setattr(paper, "EXPERIMENTS", {"mine": own, "other": other})
    monkeypatch.setattr(paper, "CLAIMS", {claim.id: claim})
    assert [figure.name for figure in paper.made_from(store, {"mine"})] == ["mine"]
    assert paper.made_from(store, {"another sweep"}) == []
    answers = answers_of(write_report(store, ["mine"], tmp_path / "report.html"))
    assert [item["name"] for item in answers["/api/figures"]["items"]] == ["mine"]
    assert answers["/api/figures/mine/picture"].startswith("data:image/png;base64,iVBOR")
    assert answers["/api/claims/two-columns"]["verdict"] == "holds"


def test_a_strangers_code_is_never_imported(tmp_path: Path) -> None:
    """A store may be anybody's: looking at a run runs none of the code that it names."""
    from grokscope import train

    code = tmp_path / "own.py"
    code.write_text(
        "from grokscope import Regularizer\n\nclass Own(Regularizer):\n"
        "    def penalty(self, weights):\n        return 0.0\n",
        encoding="utf-8",
    )
    spec = RunSpec().updated(
        {"task.modulus": 7, "model.width": 8, "training.steps": 3, "regularizer.kind": f"{code}:Own"}
    )
    train(spec, store=tmp_path / "runs", weights=True, engine="torch")
    code.write_text("raise SystemExit('imported')\n", encoding="utf-8")
    store = Store(tmp_path / "runs", create=False)
    view = runs.run_view(store, spec.run_id)
    assert view.state == "finished"
    assert view.own_code
    assert views.run_list(store).total == 1
    with pytest.raises(GrokscopeError, match="does not import"):
        networks.network_of(store, spec.run_id)


def test_the_page_has_the_colours_of_the_figures() -> None:
    palette = files()["palette.js"][0].decode()
    for column, (label, color, _) in ACCURACIES.items():
        assert f'{column}: "{color}"' in palette
        assert f'{column}: "{label}"' in palette


def test_modules_become_one_without_imports_and_with_names_of_their_own() -> None:
    import re

    script = bundle({name: content for name, (content, _) in files().items()}).decode()
    assert not re.search(r"^(import|export) ", script, re.MULTILINE)
    names = re.findall(r"^(?:async )?(?:function|class|const|let) (\w+)", script, re.MULTILINE)
    assert len(names) == len(set(names))


def test_a_report_shows_outcomes_that_only_a_table_knows(tmp_path: Path) -> None:
    tiny = RunSpec().updated({"task.modulus": 7, "model.width": 8, "training.steps": 3})
    plan = Plan.over({"task.data_fraction": [0.4, 0.8], "task.corruption": [0, 0.4]}, tiny, "mine")
    stored, _, known, unknown = plan.specs()
    store = Store(tmp_path / "runs")
    store.save(execute(stored))
    store.record_sweep("mine", plan.to_dict(), [spec.run_id for spec in plan.specs()], refined=False)
    recorded = {spec.run_id: CellOutcome(0, spec.run_id, "full_inversion", 0.75, 1.0) for spec in (stored, known)}
    answers = answers_of(write_report(store, ["mine"], tmp_path / "report.html", recorded=recorded))
    panel = answers["/api/sweeps/mine"]["panels"][0]
    ended = store.load(stored.run_id).phase
    assert ended is not None
    assert panel["outcome"] == [ended.value, None, "full_inversion", None]  # what was run counts, not what was written
    assert panel["source"] == ["run", "missing", "recorded", "missing"]
    assert panel["test_accuracy"][2] == 1.0
    view = answers[f"/api/runs/{known.run_id}"]
    assert (view["state"], view["phase"], view["has_weights"]) == ("recorded", "full_inversion", False)
    assert "train accuracy 0.750, test accuracy 1.000" in view["words"]
    assert "task.corruption=0.4" in view["spec"]["command"]
    assert answers[f"/api/runs/{stored.run_id}"]["state"] == "finished"
    assert answers[f"/api/runs/{unknown.run_id}"]["state"] == "missing"
    assert [run["run_id"] for run in answers["/api/runs"]["runs"]] == [stored.run_id]
