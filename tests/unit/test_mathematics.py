"""The formulas of docs/mathematics.md, written again in numpy as they stand there, against the package."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

import grokscope as gs
from grokscope.engines import initial_state
from grokscope.engines.native_engine import NativeEngine
from grokscope.groups import Irreducibles, group_called
from grokscope.measure.pruning.prefixes import evaluate_prefixes
from grokscope.measure.spectra.spectrum import inverse_participation_ratio
from grokscope.models.module import NetworkModule, logits_of, losses_per_example
from grokscope.optimizers import AdamW
from grokscope.randomness import dropout_scale
from grokscope.tasks import modular_waves

P, N = 13, 20
EXACT = 1e-10
Array = npt.NDArray[np.float64]


def weights(seed: int = 0) -> dict[str, Array]:
    """Double precision, and nothing that is zero, one or symmetric."""
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape) for name, shape in (("U", (N, P)), ("V", (N, P)), ("W", (P, N)))}


def module(own: dict[str, Array], **fields: Any) -> NetworkModule:
    return NetworkModule(gs.MLP(width=own["U"].shape[0], **fields), own).double()  # type: ignore[arg-type]


def pairs(p: int = P) -> npt.NDArray[np.int64]:
    return np.indices((p, p)).reshape(2, -1).T  # [p², 2]


def logits(own: dict[str, Array], inputs: npt.NDArray[np.int64]) -> Array:
    """f_q(m, n) = Σ_k W_qk (U_km + V_kn)²."""
    m, n = inputs.T
    return np.asarray((own["U"][:, m] + own["V"][:, n]).T ** 2 @ own["W"].T)


def dataset(data_fraction: float = 0.6, corruption: float = 0.3, modulus: int = P) -> gs.Dataset:
    return gs.make_dataset(gs.TaskSpec(modulus=modulus, data_fraction=data_fraction, corruption=corruption))


def autograd(own: dict[str, Array], data: gs.Dataset) -> tuple[float, dict[str, Array]]:
    network = module(own)
    said = network(torch.tensor(data.train_inputs))
    loss = losses_per_example(said, torch.tensor(data.train_labels), "mse").mean()
    loss.backward()  # type: ignore[no-untyped-call]
    gradients = {name: weight.grad for name, weight in network.named_parameters() if weight.grad is not None}
    return loss.item(), {name: network.oriented(name, gradient).numpy() for name, gradient in gradients.items()}


def relative(found: Array, expected: Array) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


# ---- network, data, loss, step ----------------------------------------------------------------------------------


def test_equation_1_is_the_network() -> None:
    own = weights()
    assert relative(logits_of(module(own), pairs()).numpy(), logits(own, pairs())) < EXACT


@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_equation_5_is_the_network_with_a_norm(norm: str) -> None:
    own, rng = weights(), np.random.default_rng(1)
    gamma, beta = rng.normal(size=N), rng.normal(size=N)
    extra = {"norm_scale": gamma, "norm_shift": beta}
    m, n = pairs().T
    hidden = (own["U"][:, m] + own["V"][:, n]).T ** 2  # [p², N]
    if norm == "batch":
        mean, variance = rng.normal(size=N), rng.uniform(1, 2, N)
        extra |= {"norm_mean": mean, "norm_variance": variance}
    else:
        mean, variance = hidden.mean(axis=1, keepdims=True), hidden.var(axis=1, keepdims=True)
    expected = (gamma * (hidden - mean) / np.sqrt(variance + 1e-5) + beta) @ own["W"].T
    assert relative(logits_of(module(own | extra, norm=norm), pairs()).numpy(), expected) < EXACT


def test_dropout_acts_inside_the_activation() -> None:
    own, rng, r = weights(), np.random.default_rng(12), 0.3
    d = (rng.uniform(size=(P**2, N)) >= r) / (1 - r)
    m, n = pairs().T
    expected = (d * (own["U"][:, m] + own["V"][:, n]).T) ** 2 @ own["W"].T
    found = module(own, dropout=r)(torch.tensor(pairs()), [torch.tensor(d)]).detach().numpy()
    assert relative(found, expected) < EXACT
    assert 1 - 1 / dropout_scale(r) == pytest.approx(r, abs=2**-17)  # r is kept in 16 bits


def test_training_and_corrupted_sets_are_nested_and_as_large_as_said() -> None:
    small, large = dataset(0.3, 0.2), dataset(0.6, 0.5)
    assert len(small.train_labels) == int(0.3 * P**2)
    assert int(small.corrupted.sum()) == int(0.2 * len(small.train_labels))
    names = [set(each.train_examples.tolist()) for each in (small, large)]
    corrupted = [set(each.train_examples[each.corrupted].tolist()) for each in (dataset(0.6, 0.2), large)]
    assert names[0] < names[1]
    assert corrupted[0] < corrupted[1]


def test_a_drawn_label_is_uniform_over_all_labels() -> None:
    drawn = dataset(0.9, 0.9, modulus=97)
    hits = (drawn.train_labels == drawn.train_truth)[drawn.corrupted]
    assert abs(hits.mean() - 1 / 97) < 4 * np.sqrt(1 / 97 / len(hits))


def test_the_loss_averages_over_examples_and_outputs() -> None:
    own, data = weights(), dataset()
    residual = logits(own, data.train_inputs) - np.eye(P)[data.train_labels]
    expected = np.square(residual).sum() / (len(residual) * P)
    assert autograd(own, data)[0] == pytest.approx(expected, rel=EXACT)
    silent = {name: np.zeros_like(array) for name, array in own.items()}
    assert autograd(silent, data)[0] == pytest.approx(1 / P, rel=EXACT)


def test_initial_weights_have_the_variance_of_the_paper() -> None:
    drawn = np.concatenate([array.ravel() for array in gs.initial_weights(gs.MLP(width=500), 97).values()])
    assert drawn.std() == pytest.approx((16 * 500) ** (-1 / 3), rel=0.01)
    assert pytest.approx(0.05) == (16 * 500) ** (-1 / 3)


def test_adamw_is_the_formula() -> None:
    rng, eta, decay, step = np.random.default_rng(2), 0.01, 5.0, 7
    weight, gradient, first = (rng.normal(size=30) for _ in range(3))
    second = rng.uniform(size=30)
    tensor = torch.tensor(weight)
    moments = {"first_moment": torch.tensor(first), "second_moment": torch.tensor(second)}
    AdamW(learning_rate=eta, weight_decay=decay).update(tensor, torch.tensor(gradient), moments, step)
    a = (0.9 * first + 0.1 * gradient) / (1 - 0.9**step)
    b = (0.98 * second + 0.02 * gradient**2) / (1 - 0.98**step)
    assert relative(tensor.numpy(), (1 - eta * decay) * weight - eta * a / (np.sqrt(b) + 1e-8)) < EXACT


# ---- the analytic network ---------------------------------------------------------------------------------------


def waves(width: int) -> tuple[Array, Array, Array]:
    """θ, u and v of each neuron."""
    rng = np.random.default_rng(3)
    sigma = rng.permutation(np.arange(1, width + 1))
    return 2 * np.pi * (sigma % P) / P, rng.uniform(-np.pi, np.pi, width), rng.uniform(-np.pi, np.pi, width)


def equation_2(width: int) -> dict[str, Array]:
    theta, u, v = (column[:, None] for column in waves(width))
    c, place = (2 / width) ** (1 / 3), np.arange(P)
    return {
        "U": c * np.cos(theta * place + u),
        "V": c * np.cos(theta * place + v),
        "W": (c * np.cos(theta * place + u + v)).T.copy(),
    }


def test_equation_6_has_nine_terms() -> None:
    width = 3 * P
    theta, u, v = waves(width)
    m, n = pairs().T
    q = np.arange(P)
    a = theta * m[:, None, None] + u  # [p², 1, N]
    b = theta * n[:, None, None] + v
    g = theta * q[:, None] + u + v  # [p, N]
    terms = np.cos(g) + sum(
        (np.cos(2 * a + s * g) + np.cos(2 * b + s * g)) / 4 + (np.cos(a + b + s * g) + np.cos(a - b + s * g)) / 2
        for s in (1, -1)
    )
    own = equation_2(width)
    assert relative(2 / width * terms.sum(axis=-1), logits(own, pairs())) < EXACT
    assert relative(logits_of(module(own), pairs()).numpy(), logits(own, pairs())) < EXACT


def test_equation_7_is_the_delta_where_p_divides_the_width() -> None:
    theta, _, _ = waves(5 * P)
    main = np.cos(theta * np.arange(-P, P + 1)[:, None]).mean(axis=1)
    np.testing.assert_allclose(main, np.arange(-P, P + 1) % P == 0, atol=EXACT)


def test_what_equation_7_leaves_out_shrinks_as_the_root_of_the_width() -> None:
    right = np.eye(P)[pairs().sum(axis=1) % P]
    rest = [np.sqrt(np.square(logits(equation_2(width), pairs()) - right).mean()) for width in (40 * P, 1000 * P)]
    assert rest[0] / rest[1] == pytest.approx(5, rel=0.3)


def test_the_analytic_weights_of_the_package_have_this_form() -> None:
    own = gs.analytic_weights(P, 50)
    found = gs.neuron_waves(gs.MLP(width=50), own, gs.TaskSpec(modulus=P))
    c = (2 / 50) ** (1 / 3)
    place = np.arange(P)
    assert sorted(found.wave.tolist()) == sorted(min(k % P, -k % P) for k in range(1, 51))
    for k in np.flatnonzero(found.wave):  # a constant has a sign instead of a phase
        theta, (u, v, _) = 2 * np.pi * found.wave[k] / P, found.phase[:, k]
        np.testing.assert_allclose(own["U"][k], c * np.cos(theta * place + u), atol=1e-6)
        np.testing.assert_allclose(own["V"][k], c * np.cos(theta * place + v), atol=1e-6)
        np.testing.assert_allclose(own["W"][:, k], c * np.cos(theta * place + u + v), atol=1e-6)


# ---- IPR and phases ---------------------------------------------------------------------------------------------


def ipr(amplitudes: Array) -> Array:
    return np.asarray((amplitudes**4).sum(axis=-1) / (amplitudes**2).sum(axis=-1) ** 2)


def amplitudes(vectors: Array) -> Array:
    p = vectors.shape[-1]
    sigma = np.arange(p // 2 + 1)
    return np.asarray(np.abs(vectors @ np.exp(-2j * np.pi * np.outer(np.arange(p), sigma) / p)))


@pytest.mark.parametrize("p", [12, 13, 97])
def test_equations_3_and_4_are_the_ipr(p: int) -> None:
    rng = np.random.default_rng(4)
    vectors = rng.normal(size=(3, 20, p))  # of U, V and W
    basis = modular_waves("add", p)
    assert relative(inverse_participation_ratio(basis.amplitudes(vectors)), ipr(amplitudes(vectors))) < EXACT
    own = {"U": vectors[0], "V": vectors[1], "W": vectors[2].T}
    spectra = gs.neuron_spectra(gs.MLP(width=20), own, gs.TaskSpec(modulus=p))
    assert spectra is not None  # and keeps single precision
    np.testing.assert_allclose(spectra.neuron_ipr, ipr(amplitudes(vectors)).mean(axis=0), rtol=1e-6)


def test_known_values_of_the_ipr() -> None:
    place, rng = np.arange(97), np.random.default_rng(5)
    for count in (1, 2, 5):
        several = sum(np.cos(2 * np.pi * sigma * place / 97 + 0.3 * sigma) for sigma in range(3, 3 + count))
        assert float(ipr(amplitudes(np.asarray(several)))) == pytest.approx(1 / count, rel=EXACT)
    assert ipr(np.ones(49)) == pytest.approx(1 / 49)  # the least
    noise = ipr(amplitudes(rng.normal(size=(4000, 97)))).mean()
    assert noise == pytest.approx(2 / 49, rel=0.05)
    full = np.abs(np.fft.fft(np.cos(2 * np.pi * 3 * place / 97)))
    assert ipr(full) == pytest.approx(0.5)


def test_multiplication_is_read_in_the_order_of_powers() -> None:
    rng = np.random.default_rng(6)
    vectors = rng.normal(size=(5, 13))
    powers = [pow(2, exponent, 13) for exponent in range(12)]  # 2 generates the numbers 1 … 12
    found = modular_waves("multiply", 13).amplitudes(vectors)
    assert relative(found, amplitudes(vectors[:, powers])) < EXACT


def table_2(T: float, E: float, best: float, xi: float) -> str:
    rows = [
        ("coexistence", E >= 0.9 and T >= 0.9),
        ("partial_inversion", E >= 0.9 and 1.05 - xi <= T < 0.9),
        ("full_inversion", E >= 0.9 and T < 0.9 and 1.05 - xi > T),
        ("memorization", E < 0.9 and T >= 0.9),
        ("forgetting", E < 0.9 and T < 0.9 and best >= 0.9),
        ("confusion", E < 0.9 and T < 0.9 and best < 0.9),
    ]
    (name,) = [name for name, true in rows if true]  # exactly one
    return name


def test_table_2_is_how_phases_are_named() -> None:
    grid = np.linspace(0, 1, 21)
    for xi in (0.0, 0.1, 0.35, 0.9):
        for T in grid:
            for E in grid:
                for best in {float(E), max(0.95, float(E))}:
                    assert gs.classify(T, E, xi, best) == table_2(T, E, best, xi)


# ---- gradients --------------------------------------------------------------------------------------------------


def test_equation_9_is_the_gradient() -> None:
    own, data = weights(), dataset()
    U, V, W = own["U"], own["V"], own["W"]
    expected = {name: np.zeros_like(array) for name, array in own.items()}
    size = len(data.train_labels) * P
    for (m, n), y in zip(data.train_inputs, data.train_labels, strict=True):
        z = U[:, m] + V[:, n]  # [N]
        r = W @ z**2 - (np.arange(P) == y)  # [p]
        expected["U"][:, m] += 4 / size * (r @ W) * z
        expected["V"][:, n] += 4 / size * (r @ W) * z
        expected["W"] += 2 / size * np.outer(r, z**2)
    for name, gradient in autograd(own, data)[1].items():
        assert relative(gradient, expected[name]) < EXACT, name


def full_grid(A: Array, B: Array, W: Array) -> tuple[Array, Array]:
    """G_A and G_W."""
    p = len(A)

    def s(X: Array) -> Array:
        return np.asarray(X.sum(axis=0))

    a, b = (A * A) @ W.T, (B * B) @ W.T
    a_bar = p * a + s(b) + 2 * (A * s(B)) @ W.T
    b_bar = p * b + s(a) + 2 * (B * s(A)) @ W.T
    G_A = 2 * A * (a_bar @ W) + 2 * ((a @ W) * s(B) + s((b @ W) * B)) + 4 * A @ ((W.T @ W) * (B.T @ B))
    G_W = a_bar.T @ (A * A) + b_bar.T @ (B * B) + 2 * ((a.T @ A) * s(B) + (b.T @ B) * s(A))
    return G_A, G_W + 4 * W @ ((A.T @ A) * (B.T @ B))


def by_complement(own: dict[str, Array], data: gs.Dataset) -> dict[str, Array]:
    A, B, W = own["U"].T, own["V"].T, own["W"]
    G_A, G_W = full_grid(A, B, W)
    G_B, same = full_grid(B, A, W)
    assert relative(same, G_W) < EXACT
    for inputs, residual in (
        (data.test_inputs, logits(own, data.test_inputs)),  # the pairs that are not in D: the gradient of ½‖f‖²
        (data.train_inputs, np.eye(P)[data.train_labels]),  # and of f_y
    ):
        for (m, n), r in zip(inputs, residual, strict=True):
            z = A[m] + B[n]
            G_A[m] -= 2 * (r @ W) * z
            G_B[n] -= 2 * (r @ W) * z
            G_W -= np.outer(r, z**2)
    factor = 2 / (len(data.train_labels) * P)
    return {"U": factor * G_A.T, "V": factor * G_B.T, "W": factor * G_W}


@pytest.mark.parametrize("data_fraction", [0.3, 0.6, 0.95])
def test_the_full_grid_form_is_the_gradient(data_fraction: float) -> None:
    own, data = weights(), dataset(data_fraction)
    found = by_complement(own, data)
    for name, gradient in autograd(own, data)[1].items():
        assert relative(found[name], gradient) < EXACT, name


def test_the_kernel_has_the_full_grid_form() -> None:
    spec = gs.RunSpec().updated({"task.modulus": P, "task.data_fraction": 0.8, "model.width": N})
    state, data = initial_state(spec), gs.make_dataset(spec.task)
    _, gradient = NativeEngine(spec, data, state, form="complement").gradient()
    expected = by_complement({name: array.astype(np.float64) for name, array in state.weights.items()}, data)
    for name, array in gradient.items():
        assert relative(array.astype(np.float64), expected[name]) < 1e-5, name


@pytest.mark.parametrize(("data_fraction", "used"), [(0.58, False), (0.59, True)])
def test_where_the_full_grid_form_begins(data_fraction: float, used: bool) -> None:
    spec = gs.RunSpec().updated({"task.data_fraction": data_fraction})
    assert NativeEngine(spec, gs.make_dataset(spec.task), initial_state(spec)).uses_complement == used


# ---- pruning ----------------------------------------------------------------------------------------------------


def test_rank_one_updates_are_the_pruned_networks() -> None:
    own, order = weights(), np.random.default_rng(7).permutation(N)
    m, n = pairs().T
    F = np.zeros((P**2, P))
    for j in range(N, 0, -1):
        k = order[j - 1]
        F += np.outer((own["U"][k, m] + own["V"][k, n]) ** 2, own["W"][:, k])
        left = {name: array.copy() for name, array in own.items()}
        left["U"][order[: j - 1]], left["V"][order[: j - 1]], left["W"][:, order[: j - 1]] = 0, 0, 0
        assert relative(F, logits_of(module(left), pairs()).numpy()) < EXACT


def test_layer_norm_is_three_sums() -> None:
    own, rng, order = weights(), np.random.default_rng(8), np.arange(N)
    gamma, beta = rng.normal(size=N), rng.normal(size=N)
    m, n = pairs().T
    hidden = (own["U"][:, m] + own["V"][:, n]).T ** 2  # [p², N]
    single = {name: array.astype(np.float32) for name, array in (own | {"gamma": gamma, "beta": beta}).items()}
    labels = np.zeros(len(hidden), np.int64)
    layer = gs.HiddenLayer(hidden.astype(np.float32), single["W"], (single["gamma"], single["beta"]))
    losses = evaluate_prefixes(layer, order, labels, "mse").losses  # [N + 1, p²]
    for j in range(N):
        left = hidden * (order >= j)
        mean, deviation = left.mean(axis=1)[:, None], np.sqrt(left.var(axis=1) + 1e-5)[:, None]
        W = own["W"][:, j:]
        F = (left[:, j:] @ (W * gamma[j:]).T - mean * (W @ gamma[j:])) / deviation + W @ beta[j:]
        np.testing.assert_allclose(losses[j], np.square(F - np.eye(P)[0]).mean(axis=1), rtol=1e-4)
        if j == 0:  # the whole network, in double precision
            network = module(own | {"norm_scale": gamma, "norm_shift": beta}, norm="layer")
            assert relative(logits_of(network, pairs()).numpy(), F) < EXACT


# ---- groups -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["S4", "D5", "D6"])
def test_power_over_representations_adds_up(name: str) -> None:
    """Plancherel, for groups whose representations are real and so their own conjugates."""
    group, rng = group_called(name), np.random.default_rng(9)
    x = rng.normal(size=(7, group.order))
    power = Irreducibles(group).amplitudes(x) ** 2
    np.testing.assert_allclose(power.sum(axis=1) / group.order, np.square(x).sum(axis=1), rtol=EXACT)


def test_amplitudes_over_representations_are_the_norms_of_the_transform() -> None:
    from grokscope.groups.representations import representations_of

    group, rng = group_called("S4"), np.random.default_rng(10)
    x = rng.normal(size=group.order)
    transforms = [np.tensordot(x, each.matrices, axes=1) for each in representations_of(group)]
    expected = [np.sqrt(len(each)) * np.linalg.norm(each) for each in transforms]
    assert relative(Irreducibles(group).amplitudes(x), np.array(expected)) < EXACT


def test_the_group_of_residues_has_the_waves() -> None:
    x = np.random.default_rng(11).normal(size=(4, P))
    assert relative(Irreducibles(group_called(f"C{P}")).amplitudes(x), amplitudes(x)) < EXACT
