"""The strongest alternative: JAX, look-ups instead of one-hot products, many steps in one compiled scan."""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from grokscope import RunSpec, initial_weights, make_dataset


class JaxProgram:
    """MSE, full batch, AdamW; two layers with quadratic activation, or a Transformer with relu, without norms."""

    def __init__(self, spec: RunSpec) -> None:
        dataset = make_dataset(spec.task)
        pairs = [jnp.asarray(column) for column in dataset.train_inputs.T]
        targets = jax.nn.one_hot(jnp.asarray(dataset.train_labels), spec.task.modulus)
        weights = initial_weights(spec.model, spec.task.modulus)
        self.parameters = {name: jnp.asarray(array.T) for name, array in weights.items()}
        self.moments = [jax.tree.map(jnp.zeros_like, self.parameters) for _ in range(2)]
        self.step = 0.0
        optimizer = spec.optimizer
        logits = transformer(spec, pairs) if spec.model.kind == "transformer" else two_layers(pairs)

        def loss(parameters: Any) -> Any:
            return jnp.square(logits(parameters) - targets).mean()

        def take_step(carry: Any, _: Any) -> Any:
            parameters, first, second, step = carry
            step = step + 1
            value, gradient = jax.value_and_grad(loss)(parameters)
            first = jax.tree.map(lambda a, g: optimizer.beta1 * a + (1 - optimizer.beta1) * g, first, gradient)
            second = jax.tree.map(lambda a, g: optimizer.beta2 * a + (1 - optimizer.beta2) * g * g, second, gradient)
            bias1, bias2 = 1 - optimizer.beta1**step, 1 - optimizer.beta2**step

            def update(w: Any, a: Any, b: Any) -> Any:
                decayed = w * (1 - optimizer.learning_rate * optimizer.weight_decay)
                return decayed - optimizer.learning_rate * (a / bias1) / (jnp.sqrt(b / bias2) + optimizer.epsilon)

            return (jax.tree.map(update, parameters, first, second), first, second, step), value

        self.scan = jax.jit(lambda carry, steps: jax.lax.scan(take_step, carry, None, length=steps), static_argnums=1)

    def seconds_of(self, steps: int, clock: Callable[[], float] = time.perf_counter) -> float:
        """How long so many steps take, compilation left out."""
        carry = (self.parameters, *self.moments, self.step)
        jax.block_until_ready(self.scan(carry, steps))
        start = clock()
        jax.block_until_ready(self.scan(carry, steps))
        return clock() - start


def two_layers(pairs: list[Any]) -> Callable[[Any], Any]:
    """The logits of the pairs. Matrices are transposed: a row for each input."""
    m, n = pairs

    def logits(parameters: Any) -> Any:
        hidden = jnp.square(jnp.take(parameters["U"], m, axis=0) + jnp.take(parameters["V"], n, axis=0))
        return hidden @ parameters["W"]

    return logits


def transformer(spec: RunSpec, pairs: list[Any]) -> Callable[[Any], Any]:
    """The logits of the pairs, with what two tokens save.

    Queries, keys and values of the first layer are those of tokens; softmax over two keys is a sigmoid; only the last
    position goes through the last layer's MLP.
    """
    heads, layers, size = spec.model.heads, spec.model.layers, spec.model.embed // spec.model.heads
    power = 1 if spec.model.scaling == "d" else 0.5

    def logits(parameters: Any) -> Any:
        x = [parameters["embedding"].T + parameters["positions"].T[position] for position in (0, 1)]  # [p, d] each
        for layer in range(1, layers + 1):
            own = {name: parameters[f"{name}{layer}"] for name in ("query", "key", "value", "output")}
            going_on = (0, 1) if layer < layers else (1,)
            q = {position: x[position] @ own["query"] for position in going_on}
            k, v = ([stream @ own[name] for stream in x] for name in ("key", "value"))
            if layer == 1:
                x, k, v = ([jnp.take(t, i, axis=0) for t, i in zip(table, pairs, strict=True)] for table in (x, k, v))
                q = {position: jnp.take(table, pairs[position], axis=0) for position, table in q.items()}
            preference, difference = k[0] - k[1], (v[0] - v[1]).reshape(-1, heads, size)
            after = []
            for position in going_on:
                scores = (q[position] * preference).reshape(-1, heads, size).sum(axis=-1) / size**power
                mixed = v[1] + (jax.nn.sigmoid(scores)[..., None] * difference).reshape(v[1].shape)
                middle = x[position] + mixed @ own["output"]
                hidden = jax.nn.relu(middle @ parameters[f"mlp_in{layer}"])
                after.append(middle + hidden @ parameters[f"mlp_out{layer}"])
            x = after
        unembedding = parameters["embedding"] if spec.model.tie_weights else parameters["unembedding"]
        return x[-1] @ unembedding / spec.model.embed**power

    return logits
