"""What Python can hand to the kernel, however odd: it computes, or it refuses in one line. Nothing crashes or hangs."""

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.test_native_engine import trainer

from grokscope import EngineError, RunSpec, make_dataset
from grokscope.engines import initial_state
from grokscope.engines.native_engine import NativeEngine, native_module
from grokscope.engines.state import TrainingState

kernel = native_module()
assert kernel is not None
Trainer, LEVELS = kernel.Trainer, kernel.available_levels()
MAX_WIDTH, MAX_STEPS, MAX_SEED = 2**24 - 1, 2**32 - 1, 2**64 - 1

PAIRS, LABELS = np.array([[0, 1], [4, 4], [2, 0], [3, 3]]), np.array([1, 3, 2, 1])


def refused(call: Callable[[], object], *errors: type[Exception]) -> str:
    """What one of these errors says, in one line."""
    with pytest.raises(errors or ValueError) as caught:
        call()
    message = str(caught.value)
    assert message, "an error must say what is wrong"
    assert "\n" not in message
    return message


def shifted_by_a_byte(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same numbers at an address that no number of this type should have."""
    raw = np.zeros(array.nbytes + 1, np.uint8)
    raw[1:] = np.frombuffer(array.tobytes(), np.uint8)
    return raw[1:].view(array.dtype).reshape(array.shape)


# ---- sizes and numbers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [0, -1, MAX_WIDTH + 1, 2**31, 2**62, 2**63 - 1, 2**63, -(2**63), 10**400])
@pytest.mark.parametrize("field", ["modulus", "width", "depth"])
def test_sizes_are_bounded(field: str, wrong: int) -> None:
    most = {"modulus": 65535, "width": MAX_WIDTH, "depth": 64}[field]
    assert f"{field} must be a whole number " in (message := refused(lambda: trainer(**{field: wrong})))
    assert f" … {most}" in message


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), float("-inf"), -1e-300, 10**400])
@pytest.mark.parametrize(
    "field", ["dropout_scale", "learning_rate", "weight_decay", "beta1", "beta2", "epsilon", "momentum"]
)
def test_numbers_are_finite_and_not_negative(field: str, wrong: float) -> None:
    assert f"{field} must be a number " in refused(lambda: trainer(**{field: wrong}))


@pytest.mark.parametrize(
    "changed",
    [
        {"beta1": 1},
        {"beta2": 1.0},
        {"momentum": 1.5},
        {"epsilon": 0},
        {"dropout_scale": 0},
        {"dropout_threshold": 65536},
        {"dropout_threshold": -1},
        {"batch_size": 2**31},
        {"seed": -1},
        {"seed": 2**64},
    ],
)
def test_other_numbers_out_of_range_are_refused(changed: dict[str, object]) -> None:
    assert f"{next(iter(changed))} must be " in refused(lambda: trainer(**changed))


def test_the_limits_themselves_are_allowed() -> None:
    made = trainer(seed=MAX_SEED, learning_rate=1e308, weight_decay=0, beta1=0, beta2=0, epsilon=5e-324, batch_size=1)
    made.step = np.int64(MAX_STEPS - 1)
    assert made.advance(np.uint8(1)).shape == (1,)
    assert made.step == MAX_STEPS
    assert trainer(depth=64).advance(1).shape == (1,)


def test_a_few_examples_of_the_largest_grid_take_little_memory() -> None:
    """The p² pairs that are not among them would take 50 GB."""
    made = trainer(modulus=65535, width=1, pairs=np.array([[0, 1], [65534, 65534]]), labels=np.array([65534, 0]))
    assert not made.uses_complement
    assert np.isfinite(made.advance(2)).all()
    predictions, _ = made.evaluate(np.array([[65534, 65534]]), np.array([65534]))
    assert predictions.tolist() == [0]


@pytest.mark.parametrize("depth", [2, 64])
def test_what_no_machine_has_memory_for_is_a_memory_error(depth: int) -> None:
    assert "GB of memory" in refused(lambda: trainer(modulus=65535, width=MAX_WIDTH, depth=depth), MemoryError)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"width": 8.0}, "width must be a whole number 1 … 16777215, not float"),
        ({"seed": None}, "seed must be a whole number 0 … 18446744073709551615, not NoneType"),
        ({"beta1": "0.9"}, "beta1 must be a number from 0 to below 1, not str"),
        ({"loss": b"mse"}, "loss must be a text, not bytes"),
        ({"level": 1}, "level must be a text, not int"),
        ({"pairs": [[0, 1]]}, "pairs must be an array of int64, in rows without gaps and aligned, not list"),
        ({"labels": LABELS.astype(np.int32)}, "labels must be an array of int64, in rows without gaps and aligned"),
        ({"labels": LABELS.astype(">i8")}, "labels must be an array of int64, in rows without gaps and aligned"),
        ({"labels": shifted_by_a_byte(LABELS)}, "labels must be an array of int64, in rows without gaps and aligned"),
        ({"witdh": 8}, "Trainer has no argument 'witdh'"),
    ],
)
def test_wrong_types_are_refused(fields: dict[str, object], message: str) -> None:
    assert refused(lambda: trainer(**fields), TypeError) == message


def test_a_missing_field_is_named() -> None:
    assert refused(Trainer, TypeError) == "Trainer needs the argument level"


@pytest.mark.parametrize("words", ["", "two\nlines", "\0", "avx512" * 1000])
def test_texts_are_shown_short_and_in_one_line(words: str) -> None:
    for field in ("level", "activation", "loss", "norm", "optimizer", "form"):
        message = refused(lambda field=field: trainer(**{field: words}))  # type: ignore[misc]
        assert message.startswith(f"{field} = ")
        assert " is not allowed: must be one of " in message
        assert len(message) < 200
    assert len(refused(lambda: trainer().get(words, words))) < 200


def test_errors_of_a_number_s_own_code_come_through() -> None:
    class Odd:
        def __index__(self) -> int:
            raise KeyError("odd")

        __float__ = __index__

    for field in ("width", "seed", "beta1"):
        refused(lambda field=field: trainer(**{field: Odd()}), KeyError)  # type: ignore[misc]


# ---- steps -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [-1, MAX_STEPS + 1, 2**63 - 2, 2**63, 1.0, None])
def test_steps_are_bounded(step: Any) -> None:
    made = trainer(optimizer="sgd", batch_size=3, pairs=PAIRS, labels=LABELS)
    assert f"step must be a whole number 0 … {MAX_STEPS}" in refused(
        lambda: setattr(made, "step", step), ValueError, TypeError
    )
    assert f"steps must be a whole number 0 … {MAX_STEPS}" in refused(lambda: made.advance(step), ValueError, TypeError)
    assert made.step == 0


def test_there_is_nothing_after_the_last_step(level: str) -> None:
    made = trainer(level=level, optimizer="sgd", batch_size=3, dropout_threshold=9, pairs=PAIRS, labels=LABELS)
    made.step = MAX_STEPS - 2
    assert "the last is step 4294967295" in refused(lambda: made.advance(3))
    assert made.advance(2).shape == (2,)
    assert made.step == MAX_STEPS
    assert made.advance(0).shape == (0,)
    for call in (made.gradient, lambda: made.advance(1), lambda: made.advance(MAX_STEPS)):
        assert "the last is step 4294967295" in refused(call)


# ---- objects -----------------------------------------------------------------------------------------------------

METHODS: dict[str, Callable[[Any], object]] = {
    "step": Trainer.step.fget,
    "set step": lambda self: Trainer.step.fset(self, 1),
    "uses_complement": Trainer.uses_complement.fget,
    "advance": lambda self: Trainer.advance(self, 1),
    "gradient": Trainer.gradient,
    "evaluate": lambda self: Trainer.evaluate(self, PAIRS, LABELS),
    "get": lambda self: Trainer.get(self, "weights", "U"),
    "set": lambda self: Trainer.set(self, "weights", "U", np.zeros((5, 8), np.float32)),
}


@pytest.mark.parametrize("method", METHODS)
def test_an_object_that_was_not_initialised_is_refused(method: str) -> None:
    half_made = Trainer.__new__(Trainer)
    refused(lambda: half_made.__init__(level="plain"), TypeError)
    for made in (Trainer.__new__(Trainer), half_made):
        message = refused(lambda made=made: METHODS[method](made), TypeError)  # type: ignore[misc]
        assert message == "this Trainer was not made by calling Trainer(...)"
    assert METHODS[method](trainer()) is not NotImplemented  # it can be called


@pytest.mark.parametrize("other", [1, object(), Trainer, kernel])
@pytest.mark.parametrize("method", METHODS)
def test_another_object_is_refused(method: str, other: object) -> None:
    assert refused(lambda: METHODS[method](other), TypeError).startswith("this needs a Trainer, not ")
    with pytest.raises(TypeError):
        METHODS[method](None)


def test_a_second_initialisation_changes_nothing() -> None:
    made = trainer()
    made.step = 7
    made.__init__(level="nothing")
    assert made.step == 7


def test_an_initialisation_within_the_initialisation_is_refused() -> None:
    made = Trainer.__new__(Trainer)

    class Nested:
        def __index__(self) -> int:
            initialise({})
            return 8

    def initialise(changed: dict[str, Any]) -> None:
        made.__init__(**fields_of_a_trainer() | changed)

    assert "while it was being made" in refused(lambda: initialise({"width": Nested()}), TypeError)
    assert made.advance(1).shape == (1,)  # the inner one


def test_trainers_are_neither_copied_nor_pickled() -> None:
    made = trainer()
    ways: list[Callable[[Any], object]] = [copy.copy, copy.deepcopy]
    ways += [lambda value, protocol=protocol: pickle.dumps(value, protocol) for protocol in range(6)]  # type: ignore[misc]
    for way in ways:
        assert "neither copied nor pickled" in refused(lambda way=way: way(made), TypeError)  # type: ignore[misc]


def test_the_step_cannot_be_changed_while_another_thread_trains() -> None:
    spec = RunSpec()
    made = NativeEngine(spec, make_dataset(spec.task), initial_state(spec))._trainer
    thread = threading.Thread(target=made.advance, args=(10,))
    thread.start()
    refusals = 0
    while thread.is_alive():
        try:
            made.step = made.step
        except RuntimeError as error:
            refusals += "another thread" in str(error)
    thread.join()
    assert refusals > 0
    assert made.step == 10


# ---- states ------------------------------------------------------------------------------------------------------


def test_the_moments_of_another_optimizer_are_refused() -> None:
    array = np.ones((5, 8), np.float32)
    for optimizer, own, others in (
        ("sgd", ("momentum",), ("first_moment", "second_moment")),
        ("adam", ("first_moment", "second_moment"), ("momentum",)),
        ("adamw", ("first_moment", "second_moment"), ("momentum",)),
    ):
        made = trainer(optimizer=optimizer)
        for kind in own:
            made.set(kind, "U", array)
            np.testing.assert_array_equal(made.get(kind, "U"), array)
        for kind in others:
            message = f"there is no array '{kind}.U'"
            assert refused(lambda made=made, kind=kind: made.get(kind, "U")) == message  # type: ignore[misc]
            assert refused(lambda made=made, kind=kind: made.set(kind, "U", array)) == message  # type: ignore[misc]


def test_the_arrays_of_another_trainer_go_in_only_if_they_fit() -> None:
    ours = trainer()
    assert refused(lambda: ours.set("weights", "U", trainer(width=9).get("weights", "U"))) == (
        "weights.U has the wrong shape: must be [5, 8]"
    )
    theirs = trainer(norm="batch")
    assert "norm_scale" in refused(lambda: ours.set("weights", "norm_scale", theirs.get("weights", "norm_scale")))
    theirs.set("weights", "U", np.full((5, 8), 2, np.float32))
    ours.set("weights", "U", theirs.get("weights", "U"))
    assert (ours.get("weights", "U") == 2).all()
    for wrong in (np.ones((5, 8)), np.ones((8, 5), np.float32).T, shifted_by_a_byte(np.ones((5, 8), np.float32)), None):
        refused(lambda wrong=wrong: ours.set("weights", "U", wrong), TypeError)  # type: ignore[misc]
    assert (ours.get("weights", "U") == 2).all()


@pytest.mark.parametrize("missing", ["weights.U", "weights.W", "moments.first_moment.V", "moments.second_moment.W"])
def test_a_state_with_a_missing_array_is_not_filled_with_zeros(tiny: RunSpec, missing: str) -> None:
    state = initial_state(tiny)
    part, _, name = missing.partition(".")
    arrays = {"weights": dict(state.weights), "moments": dict(state.moments)}
    del arrays[part][name]
    with pytest.raises(EngineError, match="the state is not one of this network and optimiser"):
        NativeEngine(tiny, make_dataset(tiny.task), TrainingState(0, **arrays))


@pytest.mark.parametrize("changed", [{"model.width": 25}, {"model.norm": "batch"}, {"optimizer.kind": "sgd"}])
def test_the_state_of_another_network_is_refused(tiny: RunSpec, changed: dict[str, object]) -> None:
    for own, other in ((tiny, tiny.updated(changed)), (tiny.updated(changed), tiny)):
        with pytest.raises(EngineError, match="the state is not one of this network and optimiser"):
            NativeEngine(own, make_dataset(own.task), initial_state(other))


@pytest.mark.parametrize("loss", ["mse", "cross-entropy"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
def test_weights_that_are_not_finite_stay_visible(level: str, bad: float, loss: str) -> None:
    """A diverging run shows in its losses."""
    made = trainer(level=level, loss=loss)
    for name in ("U", "V", "W"):
        made.set("weights", name, np.full((5, 8), bad, np.float32))
    assert not np.isfinite(made.advance(3)).any()
    assert not np.isfinite(made.evaluate(PAIRS, LABELS)[1]).any()


# ---- the other functions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["mse", "cross-entropy"])
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("p", [1, 7, 65535])
def test_prefixes_of_no_neurons(level: str, p: int, norm: bool, loss: str) -> None:
    assert kernel is not None
    none, vector = np.zeros((3, 0), np.float32), np.zeros(0, np.float32)
    predictions, losses = kernel.evaluate_prefixes(
        level, none, np.zeros((p, 0), np.float32), np.zeros(0, np.int64), np.array([0, p - 1, p // 2]), loss,
        *((vector, vector) if norm else ()),
    )  # fmt: skip
    assert predictions.tolist() == [[0, 0, 0]]
    np.testing.assert_allclose(losses, np.full((1, 3), 1 / p if loss == "mse" else np.log(p)), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    "seconds", [float("inf"), float("nan"), float("-inf"), 0, -1, 60.001, 1e308, 2**64, 10**400, None, "1"]
)
def test_the_peak_is_measured_for_a_time_that_ends(seconds: Any) -> None:
    assert kernel is not None
    message = refused(lambda: kernel.fma_peak("plain", seconds), ValueError, TypeError)
    assert "seconds must be a number above 0 and at most 60" in message


def test_the_peak_of_the_shortest_time() -> None:
    assert kernel is not None
    assert 0 < kernel.fma_peak("plain", 5e-324) < 1e6


# ---- anything at all ---------------------------------------------------------------------------------------------

# No number of steps among them that would take forever, and no size that fits into this machine's memory but slowly.
ODD_NUMBERS: list[float] = [-1, 0, 2, MAX_STEPS + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), 10**400]
ODD_NUMBERS += [float("nan"), float("inf"), float("-inf"), -0.0, 0.5, 5e-324, 1e308]
ODD_TEXTS = ["", "U", "W", "H2", "weights", "momentum", "mse", "plain", "two\nlines", "\0", "\ud800", "x" * 1000]
ODD_ARRAYS: list[Any] = [
    np.array([np.nan, np.inf], np.float32), np.zeros((0, 2), np.int64), np.zeros((5, 8), np.float32),
    np.full((5, 8), np.inf, np.float32), np.zeros((2, 2), np.int64)[:, ::2], np.array(3), np.array(["a"]),
    np.full((4, 2), 2**63 - 1), np.full((4, 2), -(2**63)), np.full(4, 4), shifted_by_a_byte(PAIRS), PAIRS, LABELS,
    np.array([None, 1]), np.ma.masked_array(LABELS), np.broadcast_to(np.int64(1), (4, 2)), np.zeros((1,) * 32),
]  # fmt: skip
ODD = st.sampled_from([*ODD_NUMBERS, *ODD_TEXTS, *ODD_ARRAYS, None, True, b"", [], {}, (1, 2), object(), int, 1j])


def fields_of_a_trainer() -> dict[str, Any]:
    return {
        "level": "plain", "modulus": 5, "width": 8, "depth": 2, "activation": "quadratic", "loss": "mse",
        "norm": "none", "optimizer": "adamw", "form": "automatic", "batch_size": 0, "dropout_threshold": 0,
        "dropout_scale": 1.0, "learning_rate": 0.01, "weight_decay": 0.0, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-8,
        "momentum": 0.0, "seed": 0, "pairs": PAIRS, "labels": LABELS,
    }  # fmt: skip


FIELDS = st.fixed_dictionaries(
    {
        "level": st.sampled_from(LEVELS),
        "modulus": st.integers(5, 20),
        "width": st.integers(1, 40),
        "depth": st.sampled_from([2, 2, 3, 5]),
        "activation": st.sampled_from(["quadratic", "relu"]),
        "loss": st.sampled_from(["mse", "cross-entropy"]),
        "norm": st.sampled_from(["none", "none", "batch", "layer"]),
        "optimizer": st.sampled_from(["adamw", "adam", "sgd"]),
        "form": st.sampled_from(["automatic", "direct", "complement", "tokens"]),
        "batch_size": st.integers(0, 5),
        "dropout_threshold": st.sampled_from([0, 0, 1, 30000, 65535]),
        "seed": st.sampled_from([0, 1, MAX_SEED]),
    }
)
CALLS = st.one_of(
    st.tuples(st.just("advance"), st.tuples(st.one_of(st.integers(0, 3), ODD))),
    st.tuples(st.just("gradient"), st.just(())),
    st.tuples(st.just("evaluate"), st.one_of(st.just((PAIRS, LABELS)), st.tuples(ODD, ODD))),
    st.tuples(st.just("get"), st.tuples(ODD, ODD)),
    st.tuples(st.just("get"), st.just(("weights", "W"))),
    st.tuples(st.just("set"), st.tuples(st.sampled_from(["weights", "first_moment"]), st.just("U"), ODD)),
    st.tuples(st.just("__setattr__"), st.tuples(st.just("step"), st.one_of(st.just(MAX_STEPS - 2), ODD))),
)


def computed_or_refused(call: Callable[[], Any]) -> Any:
    """What a call gives; None if it raises an error of a kind that says whose fault it is, in one line."""
    try:
        return call()
    except (TypeError, ValueError, MemoryError) as error:
        said = str(error)
    assert said
    assert "\n" not in said
    return None


@given(
    fields=FIELDS,
    odd=st.dictionaries(st.sampled_from(sorted(fields_of_a_trainer())), ODD, max_size=2),
    weights=st.sampled_from([0.0, 0.1, 1e30, np.inf, np.nan]),
    calls=st.lists(CALLS, max_size=6),
)
@settings(max_examples=400)
def test_a_trainer_of_anything(
    fields: dict[str, Any], odd: dict[str, Any], weights: float, calls: list[tuple[str, tuple[Any, ...]]]
) -> None:
    made = computed_or_refused(lambda: Trainer(**fields_of_a_trainer() | fields | odd))
    if made is None:
        return
    for name in ("U", "V", "W"):
        made.set("weights", name, np.full_like(made.get("weights", name), weights))
    for method, arguments in calls:
        computed_or_refused(lambda method=method, arguments=arguments: getattr(made, method)(*arguments))  # type: ignore[misc]
    assert 0 <= made.step <= MAX_STEPS
    assert made.get("weights", "W").shape[1] >= 1


@given(
    shape=st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)),
    level=st.sampled_from(LEVELS),
    loss=st.sampled_from(["mse", "cross-entropy"]),
    value=st.sampled_from([0.0, 1.0, 1e30, np.inf, np.nan]),
    norm=st.booleans(),
    odd=st.dictionaries(
        st.sampled_from(["level", "hidden", "output", "order", "labels", "loss", "scale", "shift"]), ODD, max_size=2
    ),
)
@settings(max_examples=300)
def test_prefixes_of_anything(
    shape: tuple[int, int, int], level: str, loss: str, value: float, norm: bool, odd: dict[str, Any]
) -> None:
    assert kernel is not None
    n, width, p = shape
    case: dict[str, Any] = {
        "level": level, "loss": loss, "hidden": np.full((n, width), value, np.float32),
        "output": np.full((p, width), value, np.float32), "order": np.arange(width), "labels": np.zeros(n, np.int64),
    }  # fmt: skip
    if norm:
        case |= {name: np.full(width, value, np.float32) for name in ("scale", "shift")}
    found = computed_or_refused(lambda: kernel.evaluate_prefixes(**case | odd))
    assert found is None or found[0].shape == found[1].shape
    if not odd:
        assert (found is not None) == (p > 0)


@given(level=ODD, seconds=st.sampled_from([number for number in ODD_NUMBERS if not 0 < number <= 60]))
@settings(max_examples=60)
def test_the_peak_of_anything(level: object, seconds: float) -> None:
    assert kernel is not None
    assert computed_or_refused(lambda: kernel.fma_peak(level, seconds)) is None
