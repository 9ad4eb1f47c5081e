"""grokscope: how networks memorise and generalise at the same time.

>>> import grokscope as gs
>>> result = gs.run(gs.RunSpec(task=gs.TaskSpec(modulus=11), model=gs.ModelSpec(width=32)))
>>> result.weights["U"].shape
(32, 11)
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from grokscope.public import *  # noqa: F403
    from grokscope.public import __all__ as __all__
else:

    def __getattr__(name: str) -> object:
        """Load the public names when the first of them is used, so that `grokscope --help` need not wait for them."""
        if name.startswith("_") and name != "__all__":
            raise AttributeError(
                f"module 'grokscope' has no attribute {name!r}"
            )  # or asking for _native would load all
        public = import_module("grokscope.public")
        globals().update({each: getattr(public, each) for each in public.__all__}, __all__=public.__all__)
        try:
            return globals()[name]
        except KeyError:
            raise AttributeError(f"module 'grokscope' has no attribute {name!r}") from None

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
