"""IDX files: what is read, what is refused, and tasks of images."""

import gzip
import hashlib
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.idx_files import CLASSES, bright_rows, idx_bytes, write_images

import grokscope as gs
from grokscope.images import DATA_DIRECTORY, MNIST, ImageDataError, read_idx, read_images
from grokscope.images.files import NAMES, DataName


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = write_images(tmp_path / "digits")
    monkeypatch.setenv(DATA_DIRECTORY, str(directory))
    return directory


def small(data: Path, **fields: object) -> gs.RunSpec:
    return gs.RunSpec(
        task=gs.TaskSpec(kind="images", data=read_images(data).name, corruption=0.2),
        model=gs.ModelSpec(depth=4, width=32, parameterization="standard"),
        optimizer=gs.OptimizerSpec(learning_rate=0.003),
        training=gs.TrainingSpec(loss="cross-entropy", batch_size=32, steps=60, measure_every=20),
    ).updated(fields)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.integers(0, 2**32 - 1), st.booleans())
def test_what_is_written_is_read(shape: list[int], seed: int, compressed: bool) -> None:
    array = np.random.default_rng(seed).integers(0, 256, size=shape, dtype=np.uint8)
    with TemporaryDirectory() as directory:
        path = Path(directory) / ("values.gz" if compressed else "values")
        path.write_bytes(gzip.compress(idx_bytes(array)) if compressed else idx_bytes(array))
        np.testing.assert_array_equal(read_idx(path, len(shape)), array)


def test_plain_and_compressed_files_are_the_same_data(tmp_path: Path) -> None:
    plain, compressed = write_images(tmp_path / "a"), write_images(tmp_path / "b", compressed=True)
    first, second = read_images(plain), read_images(compressed)
    assert first.name == second.name
    np.testing.assert_array_equal(first.train_images, second.train_images)


def test_a_name_says_how_much_there_is_and_changes_with_every_pixel(tmp_path: Path) -> None:
    directory = write_images(tmp_path / "a")
    name = DataName.parse(read_images(directory).name)
    assert name is not None
    assert name[:4] == (300, 80, 36, CLASSES)
    path = directory / NAMES[2]
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    read_images.cache_clear()
    changed = DataName.parse(read_images(directory).name)
    assert changed is not None
    assert changed[:4] == name[:4]
    assert changed.hash != name.hash


def test_the_name_of_mnist_is_made_of_the_known_checksums() -> None:
    checksums = (
        "6bbc9ace898e44ae57da46a324031adb a25bea736e30d166cdddb491f175f624 "
        "2646ac647ad5339dbf082846283269ea 27ae3e4e09519cfbb04c329615203637"
    )
    digest = hashlib.sha256(checksums.encode()).hexdigest()
    assert f"60000+10000x784x10-{digest[:16]}" == MNIST


GOOD = idx_bytes(bright_rows(5, 0)[0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins with nothing"),
        (b"\x00\x00\x08", "begins with 00 00 08,"),
        (b"\x89PNG" + GOOD, "begins with 89 50 4e 47"),
        (idx_bytes(np.zeros(5, np.uint8)), "not with 00 00 08 03"),
        (b"\x00\x00\x0d\x03" + GOOD[4:], "begins with 00 00 0d 03"),
        (GOOD[:10], "ends within its header"),
        (GOOD[:-1], "should have 180 values by its header, and has only 179"),
        (GOOD + b"x", "should have 180 values by its header, and has more"),
        (GOOD[:4] + b"\xff" * 12, "which cannot be"),
        (GOOD[:4] + b"\x00" * 12, "which cannot be"),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_bad_files_are_one_line(content: bytes, message: str, compressed: bool, tmp_path: Path) -> None:
    path = tmp_path / ("images.gz" if compressed else "images")
    path.write_bytes(gzip.compress(content) if compressed else content)
    with pytest.raises(ImageDataError) as refused:
        read_idx(path, 3)
    assert message in str(refused.value)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("damage", [lambda packed: packed[:-9], lambda packed: b"no gzip", lambda packed: packed[:40]])
def test_damaged_gzip_is_one_line(damage: object, tmp_path: Path) -> None:
    path = tmp_path / "images.gz"
    path.write_bytes(damage(gzip.compress(GOOD)))  # type: ignore[operator]
    with pytest.raises(ImageDataError, match="not a whole gzip file"):
        read_idx(path, 3)


def test_missing_directories_and_files(tmp_path: Path) -> None:
    with pytest.raises(ImageDataError, match="there is no directory"):
        read_images(tmp_path / "nowhere")
    directory = write_images(tmp_path / "a")
    (directory / NAMES[3]).unlink()
    with pytest.raises(ImageDataError, match=f"has no {NAMES[3]}"):
        read_images(directory)
    (directory / NAMES[3]).mkdir()
    with pytest.raises(ImageDataError, match=f"has no {NAMES[3]}"):
        read_images(directory)


def test_labels_and_images_must_fit(tmp_path: Path) -> None:
    directory = write_images(tmp_path / "a")
    (directory / NAMES[1]).write_bytes(idx_bytes(np.zeros(299, np.uint8)))
    with pytest.raises(ImageDataError, match="299 labels for 300 images"):
        read_images(directory)
    directory = write_images(tmp_path / "b")
    (directory / NAMES[2]).write_bytes(idx_bytes(np.zeros((80, 5, 5), np.uint8)))
    with pytest.raises(ImageDataError, match="6 × 6 to train on and of 5 × 5 to test on"):
        read_images(directory)


def test_other_data_than_was_asked_for_is_refused(data: Path) -> None:
    with pytest.raises(ImageDataError, match="are not MNIST: they are 300"):
        gs.TaskSpec(kind="images").dataset()
    with pytest.raises(gs.SpecError, match=r"task\.data = 'mnist' is not allowed: must be a name"):
        gs.TaskSpec(kind="images", data="mnist")


def damage(data: Path) -> None:
    """Cut off the end of a file."""
    path = data / NAMES[0]
    path.write_bytes(path.read_bytes()[:-1])
    read_images.cache_clear()


@pytest.mark.parametrize(
    "start", [gs.train, lambda spec, store: gs.sweep({"task.corruption": [0]}, base=spec, store=store)]
)
def test_runs_on_damaged_data_are_refused_before_anything_is_written(start: Any, data: Path, tmp_path: Path) -> None:
    spec = small(data)
    damage(data)
    with pytest.raises(gs.GrokscopeError, match="values by its header, and has only"):
        start(spec, store=tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_a_figure_of_damaged_images_is_refused_before_anything_is_written(data: Path, tmp_path: Path) -> None:
    damage(data)
    with pytest.raises(gs.GrokscopeError, match="values by its header, and has only"):
        gs.figure("fig16", store=tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_a_finished_run_is_had_without_its_data(data: Path, tmp_path: Path) -> None:
    spec = small(data, **{"training.steps": 2})
    before = gs.train(spec, store=tmp_path / "store")
    damage(data)
    again = gs.train(spec, store=tmp_path / "store")
    assert (again.run_id, again.final.test_accuracy) == (before.run_id, before.final.test_accuracy)


def test_a_spec_of_images_needs_no_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(DATA_DIRECTORY, str(tmp_path / "nowhere"))
    spec = gs.RunSpec(task=gs.TaskSpec(kind="images"), model=gs.ModelSpec(depth=4, width=16))
    assert spec.task.training_size == 60000
    assert spec.run_id == gs.RunSpec.from_json(spec.to_json()).run_id
    assert spec.model.parameter_count(spec.task) == 16 * 784 + 2 * 16 * 16 + 10 * 16


def test_where_the_files_lie_is_no_part_of_a_run(tmp_path: Path) -> None:
    first, second = write_images(tmp_path / "a"), write_images(tmp_path / "b", compressed=True)
    other = write_images(tmp_path / "c", train=310)
    assert small(first).run_id == small(second).run_id != small(other).run_id


def test_the_split_keeps_training_and_test_images_apart(data: Path) -> None:
    files = read_images(data)
    dataset = small(data, **{"task.data_fraction": 0.5}).dataset()
    assert (len(dataset.train_labels), len(dataset.test_labels)) == (150, 80)
    assert (dataset.train_examples < 300).all()
    assert dataset.corrupted.sum() == 30
    np.testing.assert_array_equal(dataset.test_labels, files.test_labels)
    np.testing.assert_allclose(dataset.test_inputs[0], files.test_images[0].ravel() / 255, rtol=1e-6)
    np.testing.assert_array_equal(dataset.train_truth, files.train_labels[dataset.train_examples])
    whole = small(data).dataset()
    np.testing.assert_array_equal(whole.train_examples[:150], dataset.train_examples)


def test_a_deep_network_learns_the_images_and_recovers_wrong_labels(data: Path) -> None:
    result = gs.run(small(data, **{"optimizer.weight_decay": 1, "training.steps": 300}))
    assert result.final.test_accuracy > 0.95
    assert result.final.recovered_accuracy > 0.8
    assert result.final.clean_accuracy > 0.95
    audit = gs.audit_labels(result.spec, result.trained_weights(), result.dataset())
    auroc = audit.scores["margin"].auroc
    assert auroc is not None
    assert auroc > 0.95


def test_dropout_trains_too(data: Path) -> None:
    result = gs.run(small(data, **{"model.dropout": 0.3}))
    assert result.final.test_accuracy > 0.5


REAL = Path(os.environ.get(DATA_DIRECTORY) or "mnist")


@pytest.mark.skipif(not REAL.is_dir(), reason="the real MNIST is not here")
def test_the_real_mnist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATA_DIRECTORY, str(REAL.resolve()))
    files = read_images(REAL, MNIST)
    assert files.train_images.shape == (60000, 28, 28)
    assert files.train_labels[:5].tolist() == [5, 0, 4, 1, 9]
    spec = gs.RunSpec(
        task=gs.TaskSpec(kind="images", data_fraction=0.1, corruption=0.2),
        model=gs.ModelSpec(depth=4, width=64, parameterization="standard"),
        optimizer=gs.OptimizerSpec(learning_rate=0.001),
        training=gs.TrainingSpec(loss="cross-entropy", batch_size=128, steps=150, measure_every=150),
    )
    assert gs.run(spec).final.test_accuracy > 0.85
