"""Who may ask, and how much: checks that every request passes before anything looks at it.

A page of a stranger must not reach a server on this machine. A browser sends the stranger's name as Host if the name
was made to point here (DNS rebinding), and as Origin or Sec-Fetch-Site otherwise; such requests are refused. A server
that others can reach asks for a token.
"""

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 64 * 1024  # of a request's body
TOKEN = "grokscope_token"
# plotly.js writes style attributes, so styles may be inline; scripts may not.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Guard:
    """Refuses what is not for this page, and adds headers to every answer."""

    def __init__(self, app: App, token: str | None = None) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        given = self._given_token(scope, headers)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
                if given and self._token:
                    cookie = f"{TOKEN}={given}; HttpOnly; SameSite=Strict; Path=/"
                    message["headers"].append((b"set-cookie", cookie.encode()))
            await send(message)

        if refusal := self._refusal(scope, headers, given):
            await _refuse(send_with_headers, *refusal)
            return
        await self._app(scope, _bounded(receive), send_with_headers)

    def _refusal(self, scope: Scope, headers: dict[bytes, str], given: str | None) -> tuple[int, str] | None:
        host = headers.get(b"host", "")
        if self._token is None and not is_loopback(_name_of(host)):
            return 403, f"this page is only for this machine, not for the host {_name_of(host)[:60]!r}"
        origin = headers.get(b"origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return 403, "requests from other pages are refused"
        if headers.get(b"sec-fetch-site", "none") not in ("same-origin", "none") and not _is_link(scope, headers):
            return 403, "requests from other pages are refused"
        if self._token is not None and not hmac.compare_digest(given or "", self._token):
            return 401, "the address needs the token that `grokscope explore` has printed: /?token=…"
        length = headers.get(b"content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            return 413, f"a request may have {MOST_BYTES} bytes"
        return None

    def _given_token(self, scope: Scope, headers: dict[bytes, str]) -> str | None:
        if self._token is None:
            return None
        asked = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token")
        if asked:
            return asked[0].encode("ascii", "replace").decode() if asked[0].isalnum() else None
        try:
            cookie = SimpleCookie(headers.get(b"cookie", "")).get(TOKEN)
        except CookieError:
            return None
        return cookie.value if cookie is not None and cookie.value.isascii() else None


def _is_link(scope: Scope, headers: dict[bytes, str]) -> bool:
    """A person who follows a link from elsewhere to this page: it shows, and the other page learns nothing."""
    return scope["method"] == "GET" and scope["path"] == "/" and headers.get(b"sec-fetch-mode") == "navigate"


def _name_of(host: str) -> str:
    """A Host header without its port.

    >>> _name_of("127.0.0.1:8080"), _name_of("[::1]:8080")
    ('127.0.0.1', '[::1]')
    """
    return host[: host.index("]") + 1] if host.startswith("[") and "]" in host else host.partition(":")[0]


def _bounded(receive: Receive) -> Receive:
    """A body that is longer than it said ends the connection."""
    seen = 0

    async def bounded() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        return message if seen <= MOST_BYTES else {"type": "http.disconnect"}

    return bounded


async def _refuse(send: Send, status: int, words: str) -> None:
    body = ('{"detail":"' + words.replace("\\", "").replace('"', "'") + '"}').encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
