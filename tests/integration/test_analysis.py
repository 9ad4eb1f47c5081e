"""What all commands share that take a network apart."""

from pathlib import Path

import pytest

from grokscope import GrokscopeError, RunSpec, Store, run
from grokscope.cli.analysis import check_outputs, load_network
from grokscope.outputs import write_table
from grokscope.result import analytic_result


def test_a_network_by_its_id_or_analytic(tiny: RunSpec, tmp_path: Path) -> None:
    result = run(tiny)
    Store(tmp_path).save(result, weights=True)
    assert load_network(result.run_id[:5], tmp_path).run_id == result.run_id
    assert load_network("analytic", tmp_path).spec.model.width == 500
    small = load_network("analytic:31:200", tmp_path)
    assert (small.spec.task.modulus, small.spec.model.width) == (31, 200)
    assert small.engine == "analytic"
    with pytest.raises(GrokscopeError, match="analytic:P:N"):
        load_network("analytic:abc", tmp_path)
    with pytest.raises(GrokscopeError, match=r"model\.width = 0 is not allowed"):
        load_network("analytic:31:0", tmp_path)


def test_a_run_without_weights_says_how_to_get_them(tiny: RunSpec, tmp_path: Path) -> None:
    result = run(tiny)
    Store(tmp_path).save(result)
    with pytest.raises(GrokscopeError, match=rf"runs export {result.run_id} .*--save-weights"):
        load_network(result.run_id, tmp_path)
    diverged = run(tiny.updated({"optimizer.learning_rate": 1e20}))
    Store(tmp_path).save(diverged, weights=True)
    with pytest.raises(GrokscopeError, match="diverged at step"):
        load_network(diverged.run_id, tmp_path)


def test_the_analytic_network_is_a_result_like_any_other() -> None:
    result = analytic_result()
    assert result.final.test_accuracy == 1
    assert result.final.mean_ipr == pytest.approx(1)
    assert result.phase == "full_inversion"
    assert result.neurons is not None
    assert result.neurons.ipr.shape == (3, 500)


def test_tables_and_their_paths(tmp_path: Path) -> None:
    written = write_table(tmp_path / "new" / "t.csv", {"k": [1, 2], "name": ["a", "b,c"]})
    assert written.read_text() == 'k,name\n1,a\n2,"b,c"\n'
    check_outputs([Path("a.png"), Path("b.csv")])
    check_outputs(None, as_json=True)
    with pytest.raises(GrokscopeError, match="--json writes no files"):
        check_outputs([Path("a.png")], as_json=True)
    with pytest.raises(GrokscopeError, match=r"must end in \.png, \.pdf, \.svg or \.csv"):
        check_outputs([Path("a.png"), Path("b.xls")])
    with pytest.raises(GrokscopeError, match="cannot write"):
        write_table(written / "below.csv", {"k": [1]})
