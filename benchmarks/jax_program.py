"""The strongest alternative: JAX, look-up instead of one-hot products, many steps in one compiled scan."""

import time
from typing import Any

import jax
import jax.numpy as jnp

from grokscope import RunSpec, initial_weights, make_dataset


class JaxProgram:
    """Quadratic activation, MSE, full batch, AdamW."""

    def __init__(self, spec: RunSpec) -> None:
        dataset = make_dataset(spec.task)
        m, n = (jnp.asarray(column) for column in dataset.train_inputs.T)
        targets = jax.nn.one_hot(jnp.asarray(dataset.train_labels), spec.task.modulus)
        weights = initial_weights(spec.model, spec.task.modulus)
        self.parameters = {
            "u": jnp.asarray(weights["U"].T),
            "v": jnp.asarray(weights["V"].T),
            "w": jnp.asarray(weights["W"].T),
        }
        self.moments = [jax.tree.map(jnp.zeros_like, self.parameters) for _ in range(2)]
        self.step = 0.0
        optimizer = spec.optimizer

        def loss(parameters: Any) -> Any:
            hidden = jnp.square(jnp.take(parameters["u"], m, axis=0) + jnp.take(parameters["v"], n, axis=0))
            return jnp.square(hidden @ parameters["w"] - targets).mean()

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

    def seconds_of(self, steps: int) -> float:
        """How long so many steps take, compilation left out."""
        carry = (self.parameters, *self.moments, self.step)
        jax.block_until_ready(self.scan(carry, steps))
        start = time.perf_counter()
        jax.block_until_ready(self.scan(carry, steps))
        return time.perf_counter() - start
