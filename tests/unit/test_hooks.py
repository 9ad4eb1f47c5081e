"""Looking into a forward pass, and changing it there."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.plain_networks import plain_logits
from torch import Tensor

import grokscope as gs
from grokscope.models.module import NetworkModule
from grokscope.tasks import Seeding, Task

P = 7
PAIRS = torch.tensor([[m, n] for m in range(P) for n in range(P)])
NETWORKS: dict[str, gs.Network] = {
    "mlp": gs.MLP(width=12),
    "batch norm": gs.MLP(width=12, norm="batch"),
    "layer norm": gs.MLP(width=12, norm="layer", activation="relu"),
    "deep": gs.MLP(width=12, depth=4),
    "deep, batch norm": gs.MLP(width=12, depth=3, norm="batch", activation="gelu"),
    "transformer": gs.Transformer(embed=8, heads=2),
    "three layers": gs.Transformer(embed=8, heads=4, layers=3, norm="layer"),
    "tied": gs.Transformer(embed=8, heads=2, tie_weights=True, scaling="sqrt-d"),
}


def module_of(name: str) -> NetworkModule:
    network = NETWORKS[name]
    weights = gs.initial_weights(network, modulus=P, seed=3)
    rng = np.random.default_rng(0)
    for key in weights:
        if "norm" in key:  # norms that do something; no variance below zero
            weights[key] = np.abs(weights[key] + 0.3 * rng.normal(size=weights[key].shape)).astype(np.float32)
    return network.module(weights).eval()


@pytest.mark.parametrize("name", NETWORKS)
def test_looking_changes_nothing(name: str) -> None:
    module = module_of(name)
    seen = module.activations(PAIRS)
    with torch.no_grad():
        assert torch.equal(seen["logits"], module(PAIRS))
    assert torch.equal(seen["inputs"], PAIRS)
    assert torch.equal(module.activations(PAIRS.numpy()[::-1])["logits"], module.activations(PAIRS.flip(0))["logits"])
    assert not any(value.requires_grad for value in seen.values())
    assert all(len(value) == len(PAIRS) for value in seen.values())


def test_places_have_names() -> None:
    places = {name: list(module_of(name).activations(PAIRS)) for name in NETWORKS}
    assert places["mlp"] == ["inputs", "pre", "post", "logits"]
    assert places["batch norm"] == ["inputs", "pre", "post", "norm", "logits"]
    assert places["deep"] == ["inputs", "pre", "post", "pre2", "post2", "pre3", "post3", "logits"]
    assert places["deep, batch norm"][1:-1] == ["pre", "post", "norm", "pre2", "post2", "norm2"]
    attention = [f"attention1.{part}" for part in ("query", "key", "value", "pattern", "mixed", "out")]
    mlp = ["resid1.mid", "mlp1.pre", "mlp1.post", "mlp1.out", "resid1.post"]
    assert places["transformer"] == ["inputs", "embed", *attention, *mlp, "logits"]
    assert len(places["three layers"]) == 3 + 3 * 11


def test_activations_of_the_analytic_network() -> None:
    """Equation 2: pre is a sum of two cosines, post its square, and the logits peak at the sum."""
    p = 23
    weights = gs.analytic_weights(modulus=p, width=400)
    inputs = np.array([[3, 5], [22, 4]])
    seen = gs.MLP(width=400).module(weights).activations(inputs)
    pre = weights["U"][:, inputs[:, 0]].T + weights["V"][:, inputs[:, 1]].T  # [2, N]
    np.testing.assert_allclose(seen["pre"], pre, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(seen["post"], pre**2, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(seen["logits"], pre**2 @ weights["W"].T, rtol=1e-4, atol=1e-4)
    assert seen["logits"].argmax(dim=1).tolist() == [8, 3]


@settings(max_examples=20)
@given(
    chosen=st.sets(st.integers(0, 11), max_size=12),
    name=st.sampled_from(["mlp", "batch norm"]),
    in_place=st.booleans(),
)
def test_ablating_neurons_is_pruning_them(chosen: set[int], name: str, in_place: bool) -> None:
    module, neurons = module_of(name), sorted(chosen)

    def ablated(x: Tensor) -> Tensor | None:
        if not in_place:
            return x * torch.tensor([k not in chosen for k in range(12)])
        x[:, neurons] = 0
        return None

    pruned = module.network.module(module.network.pruned(module.weights(), neurons)).eval()
    with torch.no_grad(), module.hooks({"post" if name == "mlp" else "norm": ablated}):
        torch.testing.assert_close(module(PAIRS), pruned(PAIRS))


def put(value: Tensor, _: Tensor) -> Tensor:
    return value


@pytest.mark.parametrize("name", NETWORKS)
def test_what_a_pass_computed_can_be_put_into_another(name: str) -> None:
    """At every place through which all goes, the later part of a pass follows from what is put there."""
    module, others = module_of(name), PAIRS.flip(0)
    seen, wanted = module.activations(others), module.activations(others)["logits"]
    cut = [place for place in seen if place.startswith(("inputs", "pre", "post", "norm", "embed", "resid", "logits"))]
    for place in cut:
        with module.hooks({place: partial(put, seen[place])}):
            torch.testing.assert_close(module.activations(PAIRS)["logits"], wanted, msg=place)


def test_patched_logits_are_the_logits() -> None:
    module = module_of("mlp")
    with module.hooks({"logits": lambda x: 2 * x}), module.hooks({"logits": lambda x: x + 1}):
        patched = module.activations(PAIRS)["logits"]
    torch.testing.assert_close(patched, 2 * module.activations(PAIRS)["logits"] + 1)


@pytest.mark.parametrize("name", ["transformer", "three layers"])
def test_an_attention_that_is_put_back_changes_nothing(name: str) -> None:
    """The plain way of computing what the fast way has found: patterns times values, heads side by side."""
    module = module_of(name)
    plain = plain_logits(module.network, module.named_arrays(), PAIRS, ())
    layers = range(1, module.network.layers + 1)
    places = [f"attention{layer}.{part}" for layer in layers for part in ("query", "key", "value", "pattern", "mixed")]
    with module.hooks(dict.fromkeys([*places, "embed"], torch.clone)):
        torch.testing.assert_close(module(PAIRS), plain)


def test_a_head_can_be_taken_out() -> None:
    module = module_of("transformer")
    arrays = module.weights()
    arrays["output1"][:, 4:] = 0  # what the second of two heads writes, of 4 dimensions each
    without = module.network.module(arrays).eval()

    def ablate(mixed: Tensor) -> None:
        assert mixed.shape == (len(PAIRS), 1, 2, 4)
        mixed[:, :, 1] = 0

    with torch.no_grad(), module.hooks({"attention1.mixed": ablate}):
        torch.testing.assert_close(module(PAIRS), without(PAIRS))


def test_no_attention_at_all_mixes_nothing() -> None:
    module = module_of("transformer")
    with module.hooks({"attention1.pattern": torch.zeros_like}):
        seen = module.activations(PAIRS)
    assert not seen["attention1.mixed"].any()
    assert not seen["attention1.out"].any()


def test_patterns_are_the_attention_of_the_network() -> None:
    module = module_of("three layers")
    pair = (3, 5)
    seen = module.activations([pair])
    expected = module.network.attention(module.weights(), pair)  # [layers, heads, query, key]
    for layer in (1, 2):
        np.testing.assert_allclose(seen[f"attention{layer}.pattern"][0], expected[layer - 1], rtol=1e-5)
    np.testing.assert_allclose(seen["attention3.pattern"][0], expected[2][:, 1:], rtol=1e-5)  # only the last is read


def test_gradients_go_through_hooks() -> None:
    module = module_of("mlp")
    kept: list[Tensor] = []

    def watch(post: Tensor) -> Tensor:
        post.retain_grad()
        kept.append(post)
        return post

    with module.hooks({"post": watch}):
        module(PAIRS)[:, 0].sum().backward()
    torch.testing.assert_close(kept[0].grad, module.named_arrays()["W"][0].expand(len(PAIRS), -1))


def test_hooks_end_with_the_block_even_after_an_error() -> None:
    module = module_of("mlp")
    plain = module(PAIRS)
    with pytest.raises(ZeroDivisionError), module.hooks({"post": lambda _: 1 / 0}):  # type: ignore[dict-item,return-value]
        module(PAIRS)
    assert torch.equal(module(PAIRS), plain)
    module.train().activations(PAIRS)
    assert module.training


@pytest.mark.parametrize(
    ("hooks", "words"),
    [
        ({"pots": torch.clone}, r"no place 'pots' to hook in this network: it has inputs, logits, post, pre.*'post'"),
        (
            {"post": lambda x: x[:, :3]},
            r"must return None or a tensor of shape \[49, 12\], and returned shape \[49, 3\]",
        ),
        ({"post": lambda x: 3}, "and returned int"),
    ],
)
def test_what_cannot_be_hooked_says_so(hooks: dict[str, object], words: str) -> None:
    module = module_of("mlp")
    with pytest.raises(gs.GrokscopeError, match=words), module.hooks(hooks):  # type: ignore[arg-type]
        module(PAIRS)


def test_torch_hooks_go_on_working() -> None:
    module, seen = module_of("mlp"), []
    module.register_forward_hook(lambda own, inputs, logits: seen.append(logits.shape))
    module(PAIRS)
    module.activations(PAIRS)
    assert seen == [(49, P), (49, P)]


class Linear(gs.Network):
    """A network that names no place."""

    kind: str = "linear"

    def initial_weights(self, task: Task, seed: int, seeding: Seeding = "independent") -> gs.models.Weights:
        return {"A": np.ones((task.classes, task.inputs.vocabulary), np.float32)}

    def forward(self, weights, inputs, layers):  # type: ignore[no-untyped-def]
        return weights["A"].T[inputs[:, 0]]


def test_a_network_of_ones_own_has_its_ends() -> None:
    network = Linear()
    module = network.module(network.initial_weights(gs.TaskSpec(modulus=P), 0))
    assert list(module.activations(PAIRS)) == ["inputs", "logits"]
    with module.hooks({"logits": torch.zeros_like}):
        assert not module(PAIRS).any()
