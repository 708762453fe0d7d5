"""One request to the console: who sent it, what it carries, and how it is answered."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qsl

from starlette.datastructures import UploadFile
from starlette.responses import HTMLResponse, RedirectResponse, Response

from toolyard.core.errors import Forbidden, TooLarge
from toolyard.faces.console.rendering import render

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Message

    from toolyard.app import App
    from toolyard.catalog import Server
    from toolyard.core.json import JsonObject
    from toolyard.core.principal import Principal
    from toolyard.identity.gate import Caller

LARGEST_FORM = 16 * 2**20
LARGEST_UPLOAD = 128 * 2**20
_MOST_FIELDS = 20_000


@dataclass(slots=True)
class Posted:
    """The fields of a form in the order of the page, and its files."""

    pairs: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def get(self, name: str) -> str:
        """The first field of that name, stripped; empty when there is none."""
        return next((text for key, text in self.pairs if key == name), "").strip()

    def all(self, name: str) -> list[str]:
        return [text for key, text in self.pairs if key == name]


class AskMcp(Protocol):
    """Asks the MCP face as a client would: server, principal, method, params; the JSON-RPC response."""

    async def __call__(
        self, server: Server, principal: Principal, method: str, params: JsonObject, /
    ) -> JsonObject: ...


@dataclass(slots=True)
class Visit:
    request: Request
    app: App
    caller: Caller
    posted: Posted
    ask_mcp: AskMcp
    pending: int = 0
    """How many calls wait for a decision, for the menu."""

    @property
    def principal(self) -> Principal:
        return self.caller.principal

    @property
    def by_htmx(self) -> bool:
        return self.request.headers.get("hx-request") == "true"

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query_params

    def part(self, name: str) -> str:
        """A named part of the path."""
        return str(self.request.path_params[name])

    def html(self, template: str, **context: Any) -> str:
        return render(template, self.frame() | context)

    def page(self, template: str, *, code: int = 200, **context: Any) -> Response:
        return HTMLResponse(self.html(template, **context), code)

    def go(self, url: str) -> Response:
        """After a write: see the result under its own address."""
        if self.by_htmx:
            return Response(status_code=204, headers={"HX-Redirect": url})
        return RedirectResponse(url, 303)

    def frame(self) -> dict[str, Any]:
        """What every page needs around its content."""
        return {
            "path": self.request.url.path,
            "csrf": self.caller.csrf,
            "who": self.principal.label,
            "can_log_out": self.caller.session is not None,
            "demo": self.app.settings.demo,
            "theme": theme_of(self.request),
            "pending": self.pending,
            "notice": self.query.get("notice", ""),
        }


def theme_of(request: Request) -> str:
    chosen = request.cookies.get("toolyard_theme", "")
    return chosen if chosen in ("light", "dark") else "auto"


async def read_posted(request: Request) -> Posted:
    """
    Raises:
        TooLarge: more than a form or an upload may hold.
    """
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        return await _read_multipart(request)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_FORM:
            raise _too_large(LARGEST_FORM)
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise TooLarge(f"The form has more than {_MOST_FIELDS} fields.", suggestion="Use the JSON view.") from None
    return Posted(pairs)


async def _read_multipart(request: Request) -> Posted:
    from starlette.requests import Request as Limited

    seen = 0

    async def receive() -> Message:
        nonlocal seen
        message = await request.receive()
        seen += len(message.get("body", b""))
        if seen > LARGEST_UPLOAD:
            raise _too_large(LARGEST_UPLOAD)
        return message

    posted = Posted()
    async with Limited(request.scope, receive).form(max_part_size=LARGEST_UPLOAD) as form:
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                posted.files[name] = await value.read()
            else:
                posted.pairs.append((name, value))
    return posted


def _too_large(limit: int) -> TooLarge:
    return TooLarge(
        f"This is more than {limit // 2**20} MB.", suggestion="Give the document's URL instead, or split it."
    )


def check_csrf(caller: Caller, token: str) -> None:
    """Also in demo mode, where the gate itself asks for no token: our own pages always carry one.

    Raises:
        Forbidden: the form does not come from one of our pages, or from one of an earlier login.
    """
    if caller.csrf and not hmac.compare_digest(caller.csrf.encode(), token.encode()):
        raise Forbidden(
            "This form is out of date, or another site's page sent it.", suggestion="Reload the page and try again."
        )
