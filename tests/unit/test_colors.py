"""The colours of phases, as people with and without colour-blindness see them."""

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex, to_rgb

from grokscope import Phase
from grokscope.plots.palette import ACCURACIES, BAR_EDGE, INPUT_COLOR, LEGIBLE, OUTPUT_COLOR, contrast, paler, text_on
from grokscope.plots.pruning import LOSSES, PRUNED_ACCURACIES

Array = npt.NDArray[np.float64]

# What of linear red, green and blue is left, by Machado, Oliveira and Fernandes (2009), at full severity.
SIGHT = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])  # of sRGB


def as_seen(color: str, sight: Array) -> Array:
    """A colour in CIELAB, where distances are those that people see. About 2 is just visible."""
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    x, y, z = np.cbrt(TO_XYZ @ np.clip(sight @ linear, 0, 1) / TO_XYZ.sum(axis=1))  # no colour here is nearly black
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_known_colors_are_seen_as_they_are() -> None:
    np.testing.assert_allclose(as_seen("#ffffff", SIGHT["normal"]), [100, 0, 0], atol=0.01)
    np.testing.assert_allclose(as_seen("#ff0000", SIGHT["normal"]), [53.24, 80.09, 67.20], atol=0.05)
    distance = {
        name: np.linalg.norm(as_seen("#b04030", sight) - as_seen("#707030", sight)) for name, sight in SIGHT.items()
    }
    assert distance["deuteranopia"] < 20 < 40 < distance["normal"]  # a red and an olive of the same lightness


@pytest.mark.parametrize("sight", SIGHT)
def test_phases_are_told_apart(sight: str) -> None:
    seen = {phase: as_seen(phase.color, SIGHT[sight]) for phase in Phase}
    distances = {pair: np.linalg.norm(seen[pair[0]] - seen[pair[1]]) for pair in combinations(Phase, 2)}
    assert min(distances.values()) >= 20, distances


@pytest.mark.parametrize("sight", SIGHT)
def test_phases_are_told_from_the_paper(sight: str) -> None:
    white = as_seen("#ffffff", SIGHT[sight])
    assert all(np.linalg.norm(as_seen(phase.color, SIGHT[sight]) - white) >= 20 for phase in Phase)


@given(colors=st.lists(st.tuples(*[st.floats(0, 1)] * 3), min_size=2, max_size=2))
def test_contrast_is_that_of_relative_luminances(colors: list[tuple[float, float, float]]) -> None:
    first, second = colors
    assert 1 <= contrast(first, second) == contrast(second, first) <= 21 + 1e-9
    # The luminance is Y of CIE 1931, of which CIELAB's lightness is a function.
    lightness = [float(as_seen(to_hex(color), SIGHT["normal"])[0]) for color in colors]
    relative = [((each + 16) / 116) ** 3 for each in lightness]
    if min(lightness) > 10:  # below, another formula applies
        expected = (max(relative) + 0.05) / (min(relative) + 0.05)
        assert contrast(to_hex(first), to_hex(second)) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("phase", Phase)
def test_names_of_phases_are_legible_on_them(phase: Phase) -> None:
    tints = [paler(phase.color, 0.0), paler(phase.color, 0.3)]
    for backgrounds in ([tints[0]], [tints[1]], tints):
        color, stroke = text_on(backgrounds)
        beside = backgrounds if stroke is None else [stroke]
        assert min(contrast(color, each) for each in beside) >= LEGIBLE
        assert stroke is None or len(backgrounds) > 1


@pytest.mark.parametrize("sight", SIGHT)
def test_curves_are_told_apart_by_colour_or_dash(sight: str) -> None:
    for (_, color, line), (_, other, dash) in combinations(ACCURACIES.values(), 2):
        distance = np.linalg.norm(as_seen(color, SIGHT[sight]) - as_seen(other, SIGHT[sight]))
        assert line != dash or distance >= 20


@pytest.mark.parametrize("sight", SIGHT)
def test_ends_of_a_network_are_told_from_phases_and_from_each_other(sight: str) -> None:
    output = as_seen(OUTPUT_COLOR, SIGHT[sight])
    others = [INPUT_COLOR, BAR_EDGE, *(phase.color for phase in Phase)]
    assert min(np.linalg.norm(output - as_seen(other, SIGHT[sight])) for other in others) >= 20


def test_curves_of_pruned_networks_are_told_apart_without_colour() -> None:
    for quantities in (PRUNED_ACCURACIES, LOSSES):
        assert len({line for _, _, line in quantities.values()}) == len(quantities)
