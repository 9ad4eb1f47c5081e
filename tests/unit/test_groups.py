"""Groups and their representations against the laws that define them."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from grokscope.errors import GrokscopeError
from grokscope.groups import Irreducibles, group_called, representations_of, why_no_group
from grokscope.measure.spectra.spectrum import inverse_participation_ratio
from grokscope.waves import Waves

SMALL = ["S2", "S3", "S4", "S5", "D3", "D4", "D7", "D12", "C2", "C7", "C12"]
names = st.sampled_from(SMALL)


@given(names, st.data())
def test_the_table_is_that_of_a_group(name: str, data: st.DataObject) -> None:
    table = group_called(name).table
    element = st.integers(0, len(table) - 1)
    a, b, c = (data.draw(element) for _ in range(3))
    assert table[table[a, b], c] == table[a, table[b, c]]
    assert table[0, a] == table[a, 0] == a
    assert sorted(table[a]) == sorted(table[:, a]) == list(range(len(table)))  # so there is an inverse


def test_orders_and_commuting() -> None:
    assert [group_called(name).order for name in SMALL] == [2, 6, 24, 120, 6, 8, 14, 24, 2, 7, 12]
    commuting = {name for name in SMALL if (group_called(name).table == group_called(name).table.T).all()}
    assert commuting == {"S2", "C2", "C7", "C12"}


def test_products_of_permutations_do_the_second_first() -> None:
    elements = list(permutations(range(4)))
    table = group_called("S4").table
    for a, b in [(5, 17), (23, 9), (1, 1), (14, 20)]:
        assert elements[table[a, b]] == tuple(elements[a][elements[b][i]] for i in range(4))


def test_a_reflection_turns_rotations_round() -> None:
    table, n = group_called("D7").table, 7
    r, s = 1, n
    assert table[s, s] == 0
    assert table[table[s, r], s] == n - 1  # s r s = r⁻¹


@pytest.mark.parametrize("name", SMALL)
def test_representations_are_homomorphisms(name: str) -> None:
    group = group_called(name)
    rng = np.random.default_rng(0)
    a, b = rng.integers(group.order, size=(2, 200))
    for part in representations_of(group):
        np.testing.assert_allclose(
            part.matrices[a] @ part.matrices[b], part.matrices[group.table[a, b]], atol=1e-12, err_msg=part.name
        )
        turned = part.matrices @ part.matrices.conj().transpose(0, 2, 1)
        np.testing.assert_allclose(turned, np.broadcast_to(np.eye(part.dimension), turned.shape), atol=1e-12)


@pytest.mark.parametrize("name", SMALL)
def test_characters_are_orthogonal_and_none_is_missing(name: str) -> None:
    group = group_called(name)
    parts = representations_of(group)
    characters = np.stack([np.trace(part.matrices, axis1=1, axis2=2) for part in parts])  # [K, order]
    products = characters @ characters.conj().T / group.order
    np.testing.assert_allclose(products, np.eye(len(parts)), atol=1e-12)  # irreducible, and all different
    # One of each pair of conjugates is there, so complex ones count twice.
    twice = [1 if np.allclose(own.imag, 0, atol=1e-9) else 2 for own in characters]
    assert sum(count * part.dimension**2 for count, part in zip(twice, parts, strict=True)) == group.order


def test_dimensions_of_permutations_are_those_of_the_hook_formula() -> None:
    assert sorted(part.dimension for part in representations_of(group_called("S5"))) == [1, 1, 4, 4, 5, 5, 6]
    assert sorted(part.dimension for part in representations_of(group_called("S4"))) == [1, 1, 2, 3, 3]


@given(st.integers(2, 40), st.data())
def test_residues_give_back_the_waves(n: int, data: st.DataObject) -> None:
    vector = data.draw(arrays(np.float64, n, elements=st.floats(-100, 100)))
    over_group, over_index = Irreducibles(group_called(f"C{n}")), Waves(np.arange(n))
    expected = over_index.amplitudes(vector)
    np.testing.assert_allclose(over_group.amplitudes(vector), expected, atol=1e-9 * (1 + expected.max()))


@given(names, st.data())
@settings(max_examples=40)
def test_plancherel(name: str, data: st.DataObject) -> None:
    """Powers sum to |G| Σ|f|², each complex representation standing for two."""
    group = group_called(name)
    vector = data.draw(arrays(np.float64, group.order, elements=st.floats(-10, 10)))
    power = np.square(Irreducibles(group).amplitudes(vector))
    twice = [1 if np.isrealobj(p.matrices) or np.allclose(p.matrices.imag, 0) else 2 for p in representations_of(group)]
    assert power @ twice == pytest.approx(group.order * np.square(vector).sum(), rel=1e-9, abs=1e-9)


@given(names, st.data())
@settings(max_examples=40)
def test_amplitudes_do_not_depend_on_where_one_starts(name: str, data: st.DataObject) -> None:
    """f(a g) and f(g a) have the amplitudes of f(g): representations are spread over the whole group."""
    group = group_called(name)
    vector = data.draw(arrays(np.float64, group.order, elements=st.floats(-10, 10)))
    a = data.draw(st.integers(0, group.order - 1))
    basis = Irreducibles(group)
    for moved in (vector[group.table[a]], vector[group.table[:, a]]):
        np.testing.assert_allclose(basis.amplitudes(moved), basis.amplitudes(vector), atol=1e-8)


@pytest.mark.parametrize("name", ["S4", "S5", "D7", "D12"])
def test_the_ipr_is_one_within_a_representation_and_low_for_noise(name: str) -> None:
    group = group_called(name)
    basis = Irreducibles(group)
    rng = np.random.default_rng(1)
    for place, part in enumerate(representations_of(group)):
        entries = part.matrices.real.reshape(group.order, -1)
        vector = entries @ rng.normal(size=entries.shape[1])
        amplitudes = basis.amplitudes(vector)
        assert amplitudes.argmax() == place
        assert inverse_participation_ratio(amplitudes) == pytest.approx(1)
    # The shares of normal values are Dirichlet distributed: d² squares of the same kind in each representation.
    squares, order = np.square(basis.dimensions), group.order
    assert basis.noise_ipr == pytest.approx((squares * (squares + 2)).sum() / (order * (order + 2)), rel=0.03)


def test_what_is_not_finite_has_no_amplitudes() -> None:
    vectors = np.ones((3, 6))
    vectors[0, 2], vectors[1, 0] = np.nan, np.inf
    amplitudes = Irreducibles(group_called("S3")).amplitudes(vectors)
    assert np.isnan(amplitudes[:2]).all()
    np.testing.assert_allclose(amplitudes[2], [6, 0, 0], atol=1e-12)


@pytest.mark.parametrize("name", ["", "S1", "S6", "D2", "C1", "C1001", "Z5", "S5 ", "s5", "D-3", "S05"])
def test_there_is_no_such_group(name: str) -> None:
    assert why_no_group(name)
    with pytest.raises(GrokscopeError, match="there is no group"):
        group_called(name)


def test_flat_spectra() -> None:
    """The identity alone is spread as the squares of the dimensions: by hand for S3, 1, 4 and 1 of 6."""
    delta = np.eye(6)[0]
    power = np.square(Irreducibles(group_called("S3")).amplitudes(delta))
    np.testing.assert_allclose(power, [1, 4, 1])
