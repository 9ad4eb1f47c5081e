"""Networks as plain torch modules: the same logits, with names, and without grokscope."""

import ast
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

import grokscope as gs
from grokscope.models import plain

MLPS = [
    {"width": 16},
    {"width": 16, "norm": "batch", "activation": "relu", "dropout": 0.2},
    {"width": 16, "norm": "layer", "activation": "gelu"},
    {"width": 16, "depth": 4, "norm": "batch"},
]
TRANSFORMERS = [
    {"kind": "transformer", "embed": 8, "heads": 2},
    {"kind": "transformer", "embed": 12, "heads": 3, "layers": 11, "norm": "layer", "scaling": "sqrt-d"},
    {"kind": "transformer", "embed": 8, "heads": 1, "layers": 2, "tie_weights": True, "activation": "gelu"},
]


def trained(**model: object) -> gs.RunResult:
    """A few steps, so that no weight is where it began; statistics of BatchNorm included."""
    spec = gs.RunSpec(
        task=gs.TaskSpec(modulus=7), model=gs.ModelSpec(**model), training=gs.TrainingSpec(steps=5, batch_size=8)
    )
    return gs.run(spec)


@pytest.mark.parametrize("model", [*MLPS, *TRANSFORMERS])
def test_the_plain_module_says_what_the_network_says(model: dict[str, object]) -> None:
    result = trained(**model)
    module = result.to_torch()
    pairs = torch.cartesian_prod(torch.arange(7), torch.arange(7))
    with torch.no_grad():
        said, expected = module(pairs), result.module()(pairs)
    assert not module.training
    assert torch.allclose(said, expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max()))


def test_inputs_of_other_shapes() -> None:
    parity = gs.run(gs.RunSpec(task=gs.TaskSpec(kind="parity"), training=gs.TrainingSpec(steps=2)))
    inputs = torch.tensor(parity.dataset().test_inputs[:50])
    with torch.no_grad():
        assert torch.allclose(parity.to_torch()(inputs), parity.module()(inputs), atol=1e-4)
    vectors = plain.PlainMLP(5, 0, 4, 3, tokens=False)
    x = torch.randn(2, 5)
    expected = (x @ vectors.state_dict()["U.weight"].T).square() @ vectors.state_dict()["W.weight"].T
    assert torch.allclose(vectors(x), expected)


def test_layers_have_names_that_hooks_find() -> None:
    module = trained(width=16).to_torch()
    seen: dict[str, torch.Tensor] = {}
    module.get_submodule("act1").register_forward_hook(lambda _, __, output: seen.update(hidden=output))
    module(torch.tensor([[1, 2]]))
    U, V = (module.state_dict()[f"{name}.weight"] for name in "UV")
    assert torch.allclose(seen["hidden"], (U[1] + V[2]).square())
    assert [name for name, _ in trained(kind="transformer", embed=8, heads=2).to_torch().named_parameters()] == [
        "embedding.weight",
        "positions.weight",
        *(f"blocks.0.attention.{part}.weight" for part in ("query", "key", "value", "output")),
        *(f"blocks.0.mlp_{part}.weight" for part in ("in", "out")),
        "unembedding.weight",
    ]


def test_the_file_needs_nothing_but_torch(tmp_path: Path) -> None:
    """Copied to another directory, with the weights in a file, where grokscope cannot be imported."""
    source = Path(plain.__file__)
    imports = [
        node for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    names = {
        alias.name if isinstance(node, ast.Import) else str(node.module) for node in imports for alias in node.names
    }
    assert {name.split(".")[0] for name in names} == {"math", "collections", "typing", "torch"}

    result = trained(width=16, norm="batch", activation="relu")
    module = result.to_torch()
    shutil.copy(source, tmp_path / "network.py")
    safetensors.torch.save_file(module.state_dict(), tmp_path / "weights.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(module.config))
    program = """
import json, sys
sys.modules["grokscope"] = None
import safetensors.torch, torch
from network import PlainMLP
module = PlainMLP(**json.load(open("config.json"))).eval()
module.load_state_dict(safetensors.torch.load_file("weights.safetensors"))
print(json.dumps(module(torch.tensor([[3, 4]])).tolist()))
"""
    said = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    with torch.no_grad():
        np.testing.assert_allclose(json.loads(said.stdout), result.module()(torch.tensor([[3, 4]])).numpy(), rtol=1e-4)


def test_without_weights_there_is_no_module() -> None:
    with pytest.raises(gs.GrokscopeError, match="stored without weights"):
        replace(trained(width=16), weights=None).to_torch()
