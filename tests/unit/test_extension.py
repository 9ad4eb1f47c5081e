"""A user's own code: found, pinned to its source, imported when needed, and refused in one line when it is wrong."""

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grokscope as gs
from grokscope.engines import stack_key
from grokscope.extension import ExtensionError, Reference, load_class, load_module, pinned, reference_to
from grokscope.tasks import UnresolvedTask
from grokscope.training import execute

EXAMPLES = Path(__file__).parents[2] / "examples"

TASK = """
import numpy as np
import grokscope as gs

class Rule(gs.Task):
    size: int = 6

    def examples(self):
        {body}
"""
GOOD_EXAMPLES = (
    "return gs.Examples(np.indices((self.size, 2)).reshape(2, -1).T, np.arange(2 * self.size) % 3, classes=3)"
)

Write = Callable[[str, str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a file into the working directory; its name."""
    monkeypatch.chdir(tmp_path)

    def write_file(name: str, text: str) -> str:
        Path(name).write_text(text, encoding="utf-8")
        return name

    return write_file


def one_line(error: pytest.ExceptionInfo[BaseException], *parts: str) -> None:
    message = str(error.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


# ---- finding -------------------------------------------------------------------------------------------------------


def test_a_file_is_loaded_once_for_as_long_as_it_stays_the_same(write: Write) -> None:
    write("mine.py", "import itertools\nclass A: pass\n")
    assert load_module("mine.py") is load_module("mine.py")
    before = load_class("mine.py:A", object)
    write("mine.py", "class A: changed = True\n")
    assert load_class("mine.py:A", object) is not before


def test_a_file_may_import_one_beside_it(write: Write) -> None:
    write("beside.py", "ANSWER = 42\n")
    write("mine.py", "from beside import ANSWER\nclass A:\n    answer = ANSWER\n")
    assert vars(load_class("mine.py:A", object))["answer"] == 42
    assert str(Path.cwd()) not in sys.path


@pytest.mark.parametrize(
    ("files", "kind", "parts"),
    [
        ({}, "nowhere.py:Rule", ["no file nowhere.py"]),
        ({}, "no.such.module:Rule", ["no module no.such.module"]),
        ({}, "mine.py:", ["names no code", "file.py:Class"]),
        ({"mine.py": "import no_such_thing\n"}, "mine.py:Rule", ["mine.py does not import", "no_such_thing", "line 1"]),
        ({"mine.py": "x = \n"}, "mine.py:Rule", ["mine.py does not import: SyntaxError: invalid syntax (line 1)"]),
        ({"mine.py": "x = 1\n\nraise ValueError('a\\nb')\n"}, "mine.py:Rule", ["ValueError: a b", "line 3"]),
        ({"mine.py": "class Other: pass\n"}, "mine.py:Rule", ["has no class Rule", "grokscope.Task"]),
        ({"mine.py": TASK.format(body=GOOD_EXAMPLES)}, "mine.py:Rul", ["has no class Rul", "did you mean 'Rule'"]),
        (
            {"mine.py": "class Rule: pass\n"},
            "mine.py:Rule",
            ["must be a subclass of grokscope.Task, and is one of object"],
        ),
        ({"mine.py": "Rule = 3\n"}, "mine.py:Rule", ["must be a subclass of grokscope.Task", "int"]),
        (
            {"mine.py": "import grokscope as gs\nclass Rule(gs.Task):\n    size: int = 3\n"},
            "mine.py:Rule",
            ["mine.py:Rule lacks examples()", "grokscope.Task"],
        ),
        (
            {"mine.py": TASK.format(body=GOOD_EXAMPLES).replace(": int = 6", ": int")},
            "mine.py:Rule",
            ["mine.py:Rule: the field size needs a default, as in `size: int = 1`"],
        ),
        (
            {"mine.py": TASK.format(body=GOOD_EXAMPLES).replace(": int = 6", " = 6")},
            "mine.py:Rule",
            ["mine.py does not import: `size = 6` has no type: write it, as in `x: int = 1` (line 5)"],
        ),
    ],
)
def test_what_cannot_be_had_is_refused_in_one_line(
    write: Write, files: dict[str, str], kind: str, parts: list[str]
) -> None:
    for name, text in files.items():
        write(name, text)
    with pytest.raises(gs.GrokscopeError) as error:
        gs.RunSpec().updated({"task.kind": kind})
    one_line(error, *parts)


def test_a_class_in_no_file_says_what_to_do() -> None:
    class Rule(gs.Task):
        def examples(self) -> gs.Examples:
            raise NotImplementedError

    with pytest.raises(ExtensionError, match="save it to a file"):
        Rule()


@pytest.mark.parametrize("family", [gs.Task, gs.Network, gs.Optimizer, gs.Corruption, gs.Measurement])
def test_a_class_without_its_methods_is_refused_in_python_too(family: type) -> None:
    with pytest.raises(ExtensionError) as error:
        type("Mine", (family,), {})()
    one_line(error, "Mine lacks ", f"which every subclass of grokscope.{family.__name__} has")


def test_a_regulariser_that_does_nothing_is_refused(write: Write) -> None:
    write("mine.py", "import grokscope as gs\nclass Mine(gs.Regularizer):\n    strength: float = 1.0\n")
    with pytest.raises(ExtensionError) as error:
        gs.RunSpec().updated({"regularizer.kind": "mine.py:Mine"})
    one_line(error, "Mine does nothing", "example_losses() or penalty()")


def test_an_error_names_the_line_of_the_users_file_that_it_came_through(write: Write) -> None:
    write("mine.py", TASK.format(body="return {}[self.size]"))
    with pytest.raises(ExtensionError) as error:
        gs.RunSpec().updated({"task.kind": "mine.py:Rule"})
    one_line(error, "mine.py:Rule", "KeyError: 6 (mine.py, line 9)")
    write("mine.py", TASK.format(body="return gs.Examples(np.zeros((3, 2), int), np.arange(3), classes=2)"))
    with pytest.raises(ExtensionError) as error:
        gs.RunSpec().updated({"task.kind": "mine.py:Rule"})
    one_line(error, "labels must lie in 0 … 1; these go from 0 to 2 (mine.py, line 9)")


def test_long_objects_have_a_short_repr() -> None:
    assert repr(gs.RunSpec().updated({"task.modulus": 7}).dataset()) == (
        "<Dataset add mod 7: 24 training examples, 8 of them corrupted, and 25 test examples, 7 labels>"
    )
    assert repr(gs.Drawing(None, {"step": [1, 2], "loss": [3, 4]}, "fig01")) == "<Drawing fig01: 2 rows of step, loss>"  # type: ignore[arg-type]
    assert repr(gs.Findings()) == "<Findings: none>"


# ---- identity ------------------------------------------------------------------------------------------------------


def test_the_source_is_part_of_the_identity_and_the_place_is_not(write: Write) -> None:
    text = TASK.format(body=GOOD_EXAMPLES)
    write("mine.py", text)
    here = gs.RunSpec().updated({"task.kind": "mine.py:Rule", "task.size": 7})
    Path("elsewhere").mkdir()
    write("elsewhere/yours.py", text)
    there = gs.RunSpec().updated({"task.kind": "elsewhere/yours.py:Rule", "task.size": 7})
    assert here.run_id == there.run_id
    assert here.run_id != gs.RunSpec().updated({"task.kind": "mine.py:Rule", "task.size": 8}).run_id
    write("mine.py", text + "\n# another rule\n")
    assert here.run_id != gs.RunSpec().updated({"task.kind": "mine.py:Rule", "task.size": 7}).run_id


@pytest.mark.parametrize(
    "fields",
    [
        {"task.corruption_kind": "nearby_labels.py:Nearby"},
        {"training.measurements": ["effective_rank.py:EffectiveRank"]},
        {"regularizer.kind": "regularizers.py:NormPenalty"},
        {"optimizer.kind": "muon.py:Muon"},
        {"model.kind": "bilinear.py:Bilinear"},
    ],
)
def test_every_kind_of_code_is_pinned(fields: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)
    spec = gs.RunSpec().updated(fields)
    (code,) = spec.code()
    assert Reference.parse(code).source == Reference.parse(pinned(code.partition("@")[0])).source
    assert spec.run_id != gs.RunSpec().run_id
    assert gs.RunSpec.from_json(spec.to_json()) == spec
    assert gs.RunSpec.from_toml(spec.to_toml()).run_id == spec.run_id


def test_an_edited_file_is_not_taken_for_the_old_one(write: Write) -> None:
    write("mine.py", TASK.format(body=GOOD_EXAMPLES))
    spec = gs.RunSpec().updated({"task.kind": "mine.py:Rule"})
    write("mine.py", TASK.format(body=GOOD_EXAMPLES) + "#\n")
    with pytest.raises(ExtensionError, match=r"mine.py has changed since: the source of Rule was \w{16} and is now"):
        gs.RunSpec.from_json(spec.to_json())


def test_a_class_passed_in_python_is_the_same_as_one_named_in_a_file(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("my_own_rules.py", TASK.format(body=GOOD_EXAMPLES))
    monkeypatch.syspath_prepend(str(tmp_path))
    from my_own_rules import Rule  # type: ignore[import-not-found]

    spec = gs.RunSpec(task=Rule(size=7))
    assert spec.run_id == gs.RunSpec().updated({"task.kind": "my_own_rules.py:Rule", "task.size": 7}).run_id
    assert gs.RunSpec(task=Rule).task == Rule()
    assert reference_to(Rule) == "my_own_rules.py:Rule"
    assert pickle.loads(pickle.dumps(spec)).run_id == spec.run_id


def test_another_process_gets_the_defaults_of_your_class(write: Write) -> None:
    """Not those of the class that it is derived from, which is all that is known there until the code is imported."""
    write(
        "mine.py",
        "import grokscope as gs\n"
        "class Gentle(gs.Optimizer):\n"
        "    learning_rate: float = 1e-4\n"
        "    weight_decay: float = 2.0\n"
        "    def update(self, weight, gradient, moments, step): weight.sub_(self.learning_rate * gradient)\n"
        "class Half(gs.ModularTask):\n"
        "    data_fraction: float = 0.25\n",
    )
    spec = gs.RunSpec().updated({"optimizer.kind": "mine.py:Gentle", "task.kind": "mine.py:Half"})
    there = pickle.loads(pickle.dumps(spec))
    assert (there.optimizer.learning_rate, there.optimizer.weight_decay, there.task.data_fraction) == (1e-4, 2.0, 0.25)
    assert there.run_id == there.resolved().run_id == spec.run_id
    assert pickle.loads(pickle.dumps(there)).run_id == spec.run_id


def test_a_text_with_a_colon_is_no_code(write: Write) -> None:
    body = "return gs.Examples(np.indices((3, 2)).reshape(2, -1).T, np.arange(6) % 2, classes=2)"
    write("mine.py", TASK.format(body=body).replace("size: int = 6", "where: str = ''"))
    ids = {gs.TaskSpec(kind="mine.py:Rule", where=text).identity["where"] for text in ("a:b", "c:b", "http://h:80/x")}
    assert len(ids) == 3


def test_a_class_is_no_other_kind(write: Write) -> None:
    write("mine.py", TASK.format(body=GOOD_EXAMPLES) + "class Other(Rule):\n    pass\nclass Net(gs.MLP):\n    pass\n")
    rule: Any = load_class("mine.py:Rule", object)
    net: Any = load_class("mine.py:Net", object)
    for make in (lambda: rule(kind="mine.py:Other"), lambda: net(kind="mlp"), lambda: gs.MLP(kind="transformer")):
        with pytest.raises(gs.SpecError, match=r"kind = .* is not allowed"):
            make()
    with pytest.raises(gs.SpecError, match="write a subclass of it"):
        gs.Regularizer()


def test_a_class_keeps_the_hash_of_the_source_it_was_made_from(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a notebook a file is edited after its class was imported: what trains is still the old class."""
    write("edited_rules.py", TASK.format(body=GOOD_EXAMPLES))
    monkeypatch.syspath_prepend(str(tmp_path))
    from edited_rules import Rule  # type: ignore[import-not-found]

    before = Rule().kind
    write("edited_rules.py", TASK.format(body=GOOD_EXAMPLES) + "# edited\n")
    assert Rule().kind == before
    with pytest.raises(ExtensionError, match=r"edited_rules\.py has changed since"):
        gs.TaskSpec(kind=before)


def test_fields_may_be_tuples_and_not_lists(write: Write) -> None:
    body = "return gs.Examples(np.indices((3, 2)).reshape(2, -1).T, np.arange(6) % 2, classes=2)"
    write("mine.py", TASK.format(body=body).replace("size: int = 6", "taps: tuple[int, ...] = (1, 2)"))
    spec = gs.RunSpec().updated_from_text({"task.kind": "mine.py:Rule", "task.taps": "3,4"})
    assert spec.task.taps == (3, 4)
    assert gs.RunSpec.stored(spec.model_dump(mode="json")).resolved().run_id == spec.run_id
    write("listed.py", TASK.format(body=body).replace("size: int = 6", "taps: list[int] = [1]"))
    with pytest.raises(ExtensionError, match="not lists"):
        gs.TaskSpec(kind="listed.py:Rule")


def test_a_full_spec_can_change_to_a_kind_of_ones_own(write: Write) -> None:
    write("mine.py", TASK.format(body=GOOD_EXAMPLES))
    full = gs.RunSpec.from_json(gs.RunSpec().to_json())
    assert full.updated({"task.kind": "mine.py:Rule"}).task.size == 6
    with pytest.raises(gs.SpecError, match=r"task\.modulus = 31 .* means nothing for task\.kind = 'mine\.py:Rule'"):
        full.updated({"task.modulus": 31}).updated({"task.kind": "mine.py:Rule"})


def test_a_subclass_of_modular_arithmetic_may_have_other_examples(write: Write) -> None:
    write(
        "mine.py",
        "import numpy as np\nimport grokscope as gs\n"
        "class Half(gs.ModularTask):\n"
        "    def examples(self):\n"
        "        every = super().examples()\n"
        "        kept = every.inputs[:, 0] <= every.inputs[:, 1]\n"
        "        return gs.Examples(every.inputs[kept], every.labels[kept] % 2, classes=2)\n",
    )
    task = gs.TaskSpec(kind="mine.py:Half", modulus=7)
    dataset = task.dataset()
    assert (task.example_count, task.classes) == (28, 2)
    assert len(dataset.train_labels) == len(dataset.test_labels) == 14
    result = execute(gs.RunSpec(task=task, model=gs.MLP(width=8), training=gs.TrainingSpec(steps=2)))
    assert result.engine == "torch"
    assert result.trained_weights()["W"].shape == (2, 8)


def test_a_corruption_and_a_measurement_may_be_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)
    nearby: Any = load_class("nearby_labels.py:Nearby", object)
    ranks: Any = [load_class("effective_rank.py:EffectiveRank", object)]
    spec = gs.RunSpec(task=gs.TaskSpec(corruption_kind=nearby), training=gs.TrainingSpec(measurements=ranks))
    names = {"task.corruption_kind": "nearby_labels.py:Nearby"}
    names["training.measurements"] = "effective_rank.py:EffectiveRank"
    assert spec.run_id == gs.RunSpec().updated(names).run_id


# ---- nothing is imported unasked -----------------------------------------------------------------------------------


def test_a_spec_from_a_store_imports_nothing(write: Write) -> None:
    write("mine.py", "open('imported', 'w').close()\n" + TASK.format(body=GOOD_EXAMPLES))
    spec = gs.RunSpec().updated({"task.kind": "mine.py:Rule", "task.size": 9})
    Path("imported").unlink()
    for name in [name for name in sys.modules if name.startswith("grokscope_extension_")]:
        del sys.modules[name]
    stored = gs.RunSpec.stored(spec.model_dump(mode="json"))
    assert type(stored.task) is UnresolvedTask
    assert stored.unresolved
    assert stored.run_id == spec.run_id
    assert stored.task.size == 9
    assert stored.to_toml() == spec.to_toml()
    assert "Rule" in stored.task.describe()
    with pytest.raises(ExtensionError, match=r"mine\.py:Rule"):
        stored.task.examples()
    Path("mine.py").rename("hidden.py")
    assert gs.RunSpec.stored(spec.model_dump(mode="json")) == stored  # the file need not even be there
    assert not Path("imported").exists()
    with pytest.raises(ExtensionError, match=r"no file mine.py"):
        stored.resolved()
    Path("hidden.py").rename("mine.py")
    assert stored.resolved().run_id == spec.run_id
    assert Path("imported").exists()


def test_a_stored_spec_never_looks_for_packages_that_it_names(write: Write) -> None:
    Path("stranger").mkdir()
    write("stranger/__init__.py", "open('imported', 'w').close()\n")
    write("stranger/mod.py", "")
    content = gs.RunSpec().model_dump(mode="json")
    content["task"]["corruption_kind"] = "stranger.mod:Noise"
    content["training"]["measurements"] = ["stranger.mod:Rank", "nowhere.py:Rank"]
    stored = gs.RunSpec.stored(content)
    assert len(stored.run_id) == 16
    assert not Path("imported").exists()


def test_a_change_elsewhere_imports_nothing(write: Write) -> None:
    write("mine.py", TASK.format(body=GOOD_EXAMPLES))
    content = gs.RunSpec().updated({"task.kind": "mine.py:Rule"}).model_dump(mode="json")
    Path("mine.py").unlink()
    changed = gs.RunSpec.stored(content).updated({"training.seed": 3})
    assert changed.training.seed == 3
    assert changed.unresolved


def test_a_stored_plan_with_kinds_on_an_axis_imports_nothing(write: Write) -> None:
    write("mine.py", TASK.format(body=GOOD_EXAMPLES))
    plan = gs.Plan.over({("task.kind", "task.size"): [("mine.py:Rule", 5), ("mine.py:Rule", 6)]})
    assert all("@" in str(kind) for kind, _ in plan.axes[0].points)
    content = plan.to_dict()
    Path("mine.py").unlink()
    assert gs.Plan.from_dict("again", content).axes == plan.axes


# ---- what it must do -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        ("return 3", ["examples() must return grokscope.Examples", "int"]),
        ("return gs.Examples(np.zeros(4), np.zeros(4, int), 2)", ["[n, positions]", "[4]"]),
        ("return gs.Examples(np.zeros((4, 2), int), np.zeros(3, int), 2)", ["4 whole numbers", "[3]"]),
        ("return gs.Examples(np.zeros((4, 2), int), np.zeros(4), 2)", ["4 whole numbers", "float64"]),
        ("return gs.Examples(np.zeros((4, 2), int), np.arange(4), 2)", ["0 … 1", "from 0 to 3"]),
        ("return gs.Examples(np.full((4, 2), -1), np.zeros(4, int), 2)", ["tokens count from 0", "-1"]),
        ("return gs.Examples(np.full((4, 2), np.nan), np.zeros(4, int), 2)", ["finite"]),
        ("return gs.Examples(np.array([['a', 'b']]), np.zeros(1, int), 2)", ["whole numbers (tokens) or float32"]),
        ("return gs.Examples(np.zeros((4, 2), int), np.zeros(4, int), 2, names=np.zeros(4, int))", ["all different"]),
    ],
)
def test_a_task_with_wrong_examples_is_refused(write: Write, body: str, parts: list[str]) -> None:
    write("mine.py", TASK.format(body=body))
    with pytest.raises(gs.GrokscopeError) as error:
        gs.RunSpec().updated({"task.kind": "mine.py:Rule"})
    one_line(error, *parts)


NETWORK = """
import numpy as np
import torch
import grokscope as gs

class Net(gs.Network):
    def initial_weights(self, task, seed, seeding="independent"):
        {weights}

    def forward(self, weights, inputs, layers):
        {forward}
"""
GOOD_WEIGHTS = "return {'A': np.zeros((task.classes, task.inputs.vocabulary), np.float32)}"
GOOD_FORWARD = "return weights['A'].T[inputs[:, 0]]"


@pytest.mark.parametrize(
    ("weights", "forward", "parts"),
    [
        ("return 3", GOOD_FORWARD, ["initial_weights() must return arrays by name", "int"]),
        ("return {'A': np.zeros(3)}", GOOD_FORWARD, ["'A' must be a finite float32 array", "float64"]),
        ("return {'A': np.full(3, np.nan, np.float32)}", GOOD_FORWARD, ["'A' must be a finite float32 array"]),
        ("return {'A.b': np.zeros(3, np.float32)}", GOOD_FORWARD, ["'A.b' cannot be the name"]),
        (GOOD_WEIGHTS, "return weights['B']", ["forward() failed", "KeyError", "B"]),
        (GOOD_WEIGHTS, "return weights['A'].T[inputs[:, 0], :2]", ["forward() must give", "[2, 11]", "[2, 2]"]),
        (GOOD_WEIGHTS, "return 1", ["forward() must give", "int"]),
    ],
)
def test_a_network_that_computes_something_else_is_refused(
    write: Write, weights: str, forward: str, parts: list[str]
) -> None:
    write("mine.py", NETWORK.format(weights=weights, forward=forward))
    spec = gs.RunSpec().updated({"task.modulus": 11, "model.kind": "mine.py:Net", "training.steps": 2})
    with pytest.raises(ExtensionError) as error:
        execute(spec)
    one_line(error, "mine.py:Net", *parts)


MEASUREMENT = """
import grokscope as gs

class Mine(gs.Measurement):
    columns = {columns}

    def measure(self, moment):
        {body}
"""


@pytest.mark.parametrize(
    ("columns", "body", "parts"),
    [
        ("'rank'", "return {}", ["columns must be a tuple of names", "'rank'"]),
        ("('test_accuracy',)", "return {'test_accuracy': 1.0}", ["there is a column 'test_accuracy' already"]),
        ("('rank',)", "return {'rnk': 1.0}", ["must give a dict with rank", "rnk"]),
        ("('rank',)", "return 1.0", ["must give a dict with rank", "float"]),
        ("('rank',)", "return {'rank': 'high'}", ["must give numbers", "rank = 'high'"]),
        ("('values',)", "return {'values': 1.0}", ["cannot be called 'values'"]),
    ],
)
def test_a_measurement_of_something_else_is_refused(write: Write, columns: str, body: str, parts: list[str]) -> None:
    write("mine.py", MEASUREMENT.format(columns=columns, body=body))
    fields = {"task.modulus": 11, "model.width": 8, "training.steps": 2, "training.measurements": ["mine.py:Mine"]}
    with pytest.raises(ExtensionError) as error:
        execute(gs.RunSpec().updated(fields))
    one_line(error, *parts)


def test_a_corruption_out_of_range_is_refused(write: Write) -> None:
    write(
        "mine.py",
        "import grokscope as gs\nclass Mine(gs.Corruption):\n"
        "    def labels(self, truth, examples, classes, seed):\n        return truth + classes\n",
    )
    spec = gs.RunSpec().updated({"task.modulus": 11, "task.corruption_kind": "mine.py:Mine"})
    with pytest.raises(ExtensionError) as error:
        spec.dataset()
    one_line(error, "mine.py:Mine", "0 to 10", "int64")


def test_the_kernel_does_not_stand_in_for_a_subclass_of_what_it_knows(write: Write) -> None:
    write("mine.py", "import grokscope as gs\nclass Mine(gs.MLP):\n    pass\nclass Own(gs.AdamW):\n    pass\n")
    small: dict[str, object] = {"task.modulus": 7, "training.steps": 2}
    own: list[dict[str, object]] = [{"model.kind": "mine.py:Mine"}, {"optimizer.kind": "mine.py:Own"}]
    for fields in own:
        assert execute(gs.RunSpec().updated(small | fields)).engine == "torch"
        with pytest.raises(gs.EngineError, match=r"engine = 'native' cannot run this: it has no .*mine.py"):
            execute(gs.RunSpec().updated(small | fields), engine="native")


PAIRS = """
pairs = np.indices((7, 7)).reshape(2, -1).T[::-1]
        return gs.Examples(pairs, (pairs[:, 0] * 3 + pairs[:, 1]) % 7, classes=7{names})
"""


def test_the_kernel_takes_a_task_of_pairs_only_under_their_names(write: Write) -> None:
    """It draws batches and dropout masks by the name m·p + n, and every engine must draw the same."""
    write("named.py", TASK.format(body=PAIRS.format(names=", names=pairs @ [7, 1]").strip()))
    write("other.py", TASK.format(body=PAIRS.format(names="").strip()))
    fields = {"model.width": 16, "model.dropout": 0.3, "training.batch_size": 8, "training.steps": 12}
    named = gs.RunSpec().updated({"task.kind": "named.py:Rule", **fields})
    by_kernel, by_torch = execute(named), execute(named, engine="torch")
    assert by_kernel.engine == "native"
    assert by_kernel.final.train_loss == pytest.approx(by_torch.final.train_loss, rel=1e-4)
    assert execute(gs.RunSpec().updated({"task.kind": "other.py:Rule", **fields})).engine == "torch"


def test_what_a_task_has_no_meaning_for_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)
    parity = gs.TaskSpec(kind="sparse_parity.py:SparseParity", bits=5)
    network = gs.MLP(width=8, activation="relu")
    weights = network.initial_weights(parity, seed=0)
    assert gs.neuron_spectra(network, weights, parity) is None
    for ask in (
        lambda: gs.neuron_waves(network, weights, parity),
        lambda: gs.ablate(network, weights, parity.dataset()),
        lambda: gs.RunSpec(task=parity, model=gs.Transformer()),
        lambda: gs.RunSpec(task=parity, training=gs.TrainingSpec(seeding="reference")),
    ):
        with pytest.raises(gs.GrokscopeError) as error:
            ask()
        one_line(error)


def test_vectors_of_numbers_are_inputs_too(write: Write) -> None:
    body = (
        "x = np.random.default_rng(0).normal(size=(60, 4)).astype('float32'); "
        "return gs.Examples(x, (x[:, 0] > 0).astype(int), classes=2)"
    )
    write("mine.py", TASK.format(body=body))
    spec = gs.RunSpec(task=gs.TaskSpec(kind="mine.py:Rule", corruption=0.0), model=gs.MLP(width=32, activation="relu"))
    result = execute(spec.updated({"training.steps": 200, "model.parameterization": "standard"}))
    assert result.final.train_accuracy > 0.95
    assert np.isnan(result.final.mean_ipr)
    assert result.weights is not None
    assert result.weights["U"].shape == (32, 4)
    stacked = execute(result.spec, engine="stacked")
    assert stacked.final.train_loss == pytest.approx(result.final.train_loss, rel=1e-3)


def test_neurons_that_are_copies_are_refused(write: Write) -> None:
    write(
        "mine.py",
        "import grokscope as gs\nclass Net(gs.MLP):\n    def input_neurons(self, weights):\n"
        "        return gs.Neurons('hidden', {'u': weights['U'].copy()})\n",
    )
    network = gs.ModelSpec(kind="mine.py:Net", width=4)
    with pytest.raises(ExtensionError, match="'u' is a copy"):
        gs.pruned(network, gs.initial_weights(network, modulus=5), [0])


def test_runs_that_share_a_network_of_ones_own_share_its_fields(write: Write) -> None:
    """One network computes for a whole stack, so that runs with another dropout need another stack."""
    write("mine.py", "import grokscope as gs\nclass Net(gs.MLP):\n    pass\n")
    own = gs.RunSpec().updated({"model.kind": "mine.py:Net"})
    assert stack_key(own) != stack_key(own.updated({"model.dropout": 0.5}))
    assert stack_key(own) == stack_key(own.updated({"optimizer.weight_decay": 0.5}))


OPTIMIZER = """
import grokscope as gs

class Own(gs.Optimizer):
    {head}

    def update(self, weight, gradient, moments, step):
        {body}
"""
REGULARIZER = """
import grokscope as gs

class Own(gs.Regularizer):
    def {method}:
        {body}
"""


@pytest.mark.parametrize(
    ("section", "text", "parts"),
    [
        (
            "optimizer",
            OPTIMIZER.format(head="moments = ('mean',)", body="moments['men'].add_(1)"),
            ["KeyError", "mean"],
        ),
        ("optimizer", OPTIMIZER.format(head="strength: int = 1", body="moments['mean'] = gradient"), ["moments: none"]),
        (
            "regularizer",
            REGULARIZER.format(method="penalty(self, weights)", body="return weights['U']"),
            ["one number"],
        ),
        ("regularizer", REGULARIZER.format(method="penalty(self, weights)", body="return 'much'"), ["failed"]),
        (
            "regularizer",
            REGULARIZER.format(method="example_losses(self, logits, labels, loss)", body="return logits.mean()"),
            ["one loss for each example", "[]"],
        ),
    ],
)
def test_an_update_or_a_loss_that_is_something_else_is_refused(
    write: Write, section: str, text: str, parts: list[str]
) -> None:
    write("mine.py", text)
    small: dict[str, object] = {"task.modulus": 7, "model.width": 8, "training.steps": 2}
    with pytest.raises(ExtensionError) as error:
        execute(gs.RunSpec().updated(small | {f"{section}.kind": "mine.py:Own"}))
    one_line(error, "mine.py:Own", *parts)


@pytest.mark.parametrize(
    ("extra", "parts"),
    [
        ("    dropout: float = 0.2\n", ["dropout_widths() names no place"]),
        ("    def input_neurons(self, weights):\n        return {'u': weights['A']}\n", ["grokscope.Neurons", "dict"]),
        (
            "    def input_neurons(self, weights):\n        return gs.Neurons('hidden', {'u': weights['A'][0]})\n",
            ["[N, symbols]"],
        ),
    ],
)
def test_a_network_that_does_not_keep_its_word_is_refused(write: Write, extra: str, parts: list[str]) -> None:
    weights = GOOD_WEIGHTS.replace("np.zeros((", "np.ones((")
    write("mine.py", NETWORK.format(weights=weights, forward=GOOD_FORWARD) + extra)
    spec = gs.RunSpec().updated({"task.modulus": 11, "model.kind": "mine.py:Net", "training.steps": 2})
    with pytest.raises(ExtensionError) as error:
        execute(spec)
    one_line(error, *parts)


def test_prunable_needs_neurons_and_a_hidden_layer(write: Write) -> None:
    prunable = "    def why_not_prunable(self):\n        return None\n"
    neurons = "    def input_neurons(self, weights):\n        return gs.Neurons('hidden', {'w': weights['A'].T})\n"
    write("bare.py", NETWORK.format(weights=GOOD_WEIGHTS, forward=GOOD_FORWARD) + prunable)
    write("half.py", NETWORK.format(weights=GOOD_WEIGHTS, forward=GOOD_FORWARD) + prunable + neurons)
    for file, missing in (("bare.py", "input_neurons()"), ("half.py", "hidden_layer()")):
        network, task = gs.ModelSpec(kind=f"{file}:Net"), gs.TaskSpec(modulus=5)
        weights = network.initial_weights(task, seed=0)
        with pytest.raises(gs.GrokscopeError) as error:
            gs.measure_pruning(weights, network, task.dataset())
        one_line(error, missing)
