"""News of a store for pages that are open: server-sent events when its index changes.

    data: {"version": 7}

Any process may write the store, so the index is asked once a second for a number that changes with it. A page that
hears of a change asks again for what it shows.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from grokscope.errors import GrokscopeError
from grokscope.store import Store

POLL_SECONDS = 1.0
MOST_LISTENERS = 32
_GLANCES = 5  # times in between that it looks whether the server ends
_SILENCE = 15  # polls without a change after which a comment keeps the connection open


class Listeners:
    """The pages that are listening, at most so many."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.count = 0
        self.closing = False  # the server is about to end, and every page would keep it waiting

    @property
    def full(self) -> bool:
        """Whether there is no room for another page."""
        return self.count >= MOST_LISTENERS

    async def events(self, gone: Callable[[], Awaitable[bool]]) -> AsyncIterator[str]:
        """One event at once, and one for each change, until the page is gone."""
        self.count += 1
        store: Store | None = None
        try:
            version, silent = -1, 0
            while not self.closing and not await gone():
                try:
                    store = store or Store(self._path, create=False)
                    now = store.version()
                except GrokscopeError:  # moved, or being replaced: it may come back
                    _close(store)
                    store, now = None, version
                if now != version:
                    version, silent = now, 0
                    yield f'data: {{"version": {version}}}\n\n'
                elif (silent := silent + 1) % _SILENCE == 0:
                    yield ": nothing new\n\n"
                for _ in range(_GLANCES):
                    await asyncio.sleep(0 if self.closing else POLL_SECONDS / _GLANCES)
        finally:
            self.count -= 1
            _close(store)


def _close(store: Store | None) -> None:
    if store is not None:
        store.close()
