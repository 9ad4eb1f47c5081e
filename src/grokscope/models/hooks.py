"""Named places inside a forward pass: what is computed there can be looked at, and replaced.

module = result.module()
module.activations(inputs)["post"]          # [B, N]

def without_neuron_7(post):
    post[:, 7] = 0

with module.hooks({"post": without_neuron_7}):
    module(inputs)
"""

from collections.abc import Callable, Sequence

from torch import Tensor

from grokscope.errors import GrokscopeError, did_you_mean

Hook = Callable[[Tensor], Tensor | None]  # changes what it is given in place, or returns what to go on with
NamedHook = tuple[str, Hook]


class Places:
    """The places that one forward pass comes to."""

    def __init__(self, hooks: Sequence[NamedHook], kept: dict[str, Tensor] | None = None) -> None:
        """Values are put into `kept`, if it is given, as the hooks leave them."""
        self._hooks, self._kept = hooks, kept
        self._passed: set[str] = set()

    def has_hook(self, name: str) -> bool:
        """Whether the value at this place may be replaced."""
        return any(place == name for place, _ in self._hooks)

    def at(self, name: str, value: Tensor) -> Tensor:
        """What to go on with."""
        self._passed.add(name)
        for place, hook in self._hooks:
            if place == name:
                value = _hooked(name, hook, value.clone())
        if self._kept is not None:
            self._kept[name] = value.detach()
        return value

    def check_passed(self) -> None:
        """Refuse hooks at places that the pass did not come to: they did nothing."""
        for name, _ in self._hooks:
            if name not in self._passed:
                raise GrokscopeError(
                    f"there is no place {name!r} to hook in this network: it has {', '.join(sorted(self._passed))}"
                    + did_you_mean(name, self._passed)
                )


def _hooked(name: str, hook: Hook, value: Tensor) -> Tensor:
    answer = hook(value)
    if answer is None:
        return value
    if not isinstance(answer, Tensor) or answer.shape != value.shape:
        came = f"shape {list(answer.shape)}" if isinstance(answer, Tensor) else type(answer).__name__
        raise GrokscopeError(
            f"the hook at {name!r} must return None or a tensor of shape {list(value.shape)}, and returned {came}"
        )
    return answer
