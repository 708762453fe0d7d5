"""`OpenApiProvider`: calls the operations of an imported API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from urllib.parse import urlsplit

import yarl

from toolyard.core.call import ToolResult
from toolyard.core.errors import AddressRefused, BadInput, CallError, EgressError, ErrorCode, ProviderError
from toolyard.core.json import JsonObject
from toolyard.core.names import did_you_mean
from toolyard.core.tool import Kind, Tool
from toolyard.egress import Egress, Response, without_secrets
from toolyard.providers.base import Invocation
from toolyard.providers.openapi.answer import failure_of, result_of
from toolyard.providers.openapi.api import ImportedApi
from toolyard.providers.openapi.echoes import secrets_in, without_echoes
from toolyard.providers.openapi.model import Operation
from toolyard.providers.openapi.request import Request, build_request

PROBE_SECONDS = 5.0
LONGEST_WAIT = 10.0
"""Seconds of `Retry-After` that a call waits for instead of failing."""
_ONCE_MORE = frozenset({429, 503})
_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "QUERY"})


class OpenApiProvider:
    """One imported API.

    `base_url` takes the place of the document's server. `headers` are the operator's credentials: they go on last,
    override what arguments say, and only go to the API's own origin and to `trusted_origins`, so that a `servers`
    entry in a stranger's document cannot collect them.
    """

    def __init__(
        self,
        api: ImportedApi,
        *,
        egress: Egress,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        trusted_origins: Sequence[str] = (),
    ) -> None:
        self._api = api
        self._egress = egress
        self._base_url = checked_base_url(base_url) if base_url else ""
        self._headers = dict(headers or {})
        self._secrets = secrets_in(self._headers)
        origins = (self._base_url or api.server, *trusted_origins)
        self._trusted = frozenset(origin for url in origins if (origin := _origin(url)) is not None)

    @property
    def id(self) -> str:
        return self._api.namespace

    @property
    def kind(self) -> Kind:
        return Kind.OPENAPI

    @property
    def api(self) -> ImportedApi:
        return self._api

    @property
    def address(self) -> str:
        url = self._base_url or self._api.server
        return without_secrets(url) if url else f"{self._api.title} (no base URL)"

    async def start(self) -> None:
        """Nothing to connect: every call is a request of its own."""

    async def tools(self) -> Sequence[Tool]:
        return self._api.tools

    async def call(self, invocation: Invocation) -> ToolResult:
        """
        Raises:
            CallError: `invalid_arguments`, `upstream`, `timeout`, `denied` (the address) or `reauth_required`.
        """
        operation = self._operation(invocation.tool.name)
        server = self._server_of(operation)
        key = invocation.idempotency_key or invocation.call_id
        request = _built(operation, invocation.arguments, key)
        url = server + request.target
        headers = self._with_credentials(request, url)
        deadline = asyncio.get_running_loop().time() + invocation.time_limit
        answer = await self._send(request, url, headers, invocation.time_limit)
        wait = _wait_worth_it(answer, request.method)
        if wait is not None and asyncio.get_running_loop().time() + wait < deadline:
            await asyncio.sleep(wait)
            answer = await self._send(request, url, headers, deadline - asyncio.get_running_loop().time())
        answer = without_echoes(answer, self._secrets)
        if answer.status >= 400:
            raise failure_of(answer)
        return result_of(answer)

    async def health(self) -> None:
        """Any answer of the API's host will do, whatever its status.

        Raises:
            ProviderError: there was none.
        """
        url = self._base_url or self._api.server
        if not url:
            return
        try:
            await self._egress.request("HEAD", url, time_limit=PROBE_SECONDS, max_bytes=0, follow=False)
        except EgressError as error:
            raise ProviderError(f"{self.id}: {error.message}", suggestion=error.suggestion) from error

    def on_change(self, notify: Callable[[], None]) -> None:
        """An imported document does not change by itself."""

    async def close(self) -> None:
        """The pool belongs to egress."""

    def _operation(self, name: str) -> Operation:
        operation = self._api.operations.get(name)
        if operation is None:
            raise CallError(
                ErrorCode.NOT_FOUND,
                f"{self.id} has no operation {name!r}.",
                suggestion=did_you_mean(name, self._api.operations),
            )
        return operation

    def _server_of(self, operation: Operation) -> str:
        """The operation's own server, else the operator's base URL, else the document's (decision 022)."""
        url = operation.server
        if not url:
            url = self._base_url or self._api.server
        elif self._base_url and _origin(url) == _origin(self._api.server):
            url = f"{_prefix(self._base_url)}{urlsplit(url).path}"
        if not url or "{" in url:
            raise CallError(
                ErrorCode.UPSTREAM,
                f"It is not known where {self.id} is: its document names no usable server.",
                suggestion="An operator has to set the provider's base URL.",
            )
        return _sendable(url)

    def _with_credentials(self, request: Request, url: str) -> list[tuple[str, str]]:
        if not self._headers or _origin(url) not in self._trusted:
            return list(request.headers)
        ours = {name.lower() for name in self._headers}
        return [*((name, value) for name, value in request.headers if name.lower() not in ours), *self._headers.items()]

    async def _send(self, request: Request, url: str, headers: list[tuple[str, str]], time_limit: float) -> Response:
        try:
            return await self._egress.request(
                request.method,
                url,
                headers=headers,
                body=request.body,
                time_limit=max(time_limit * 0.95, 0.05),  # ours ends first, so that what came is not lost
                encoded=True,
                keep_partial=True,
            )
        except AddressRefused as error:
            raise CallError(ErrorCode.DENIED, "This address is not allowed.") from error
        except EgressError as error:
            raise _lost(error, request.method) from error


def _built(operation: Operation, arguments: JsonObject, idempotency_key: str) -> Request:
    try:
        return build_request(operation, arguments, idempotency_key=idempotency_key)
    except ValueError as error:
        raise CallError(
            ErrorCode.INVALID_ARGUMENTS, "The arguments hold text that is no valid Unicode and cannot be sent."
        ) from error


def _lost(error: EgressError, method: str) -> CallError:
    timed_out = error.sent and isinstance(error.__cause__, TimeoutError)
    message = error.message
    suggestion = error.suggestion
    if error.sent and method not in _REPEATABLE:
        message += f" The {method} may have been carried out."
        suggestion = "Check whether it was, before calling it again."
    return CallError(ErrorCode.TIMEOUT if timed_out else ErrorCode.UPSTREAM, message, suggestion=suggestion)


def _wait_worth_it(answer: Response, method: str) -> float | None:
    wait = answer.headers.get("Retry-After", "")
    if answer.status not in _ONCE_MORE or method not in _REPEATABLE or not wait.isdecimal():
        return None
    return float(wait) if float(wait) <= LONGEST_WAIT else None


def checked_base_url(base_url: str) -> str:
    """
    Raises:
        BadInput: no absolute http or https address without query.
    """
    try:
        parts = urlsplit(base_url)
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise BadInput(
            f"{without_secrets(base_url)!r} cannot be a base URL.",
            where="base_url",
            suggestion="Give http:// or https://, a host and a path, without query: https://api.example.com/v1.",
        )
    return base_url.rstrip("/")


@lru_cache(maxsize=1024)
def _sendable(url: str) -> str:
    """A server's address as it goes on the wire: what follows is percent-encoded, so this has to be too."""
    return (url if url.isascii() and " " not in url else str(yarl.URL(url))).rstrip("/")


@lru_cache(maxsize=1024)
def _prefix(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


@lru_cache(maxsize=1024)
def _origin_of_prefix(prefix: str) -> tuple[str, str, int] | None:
    try:
        parts = urlsplit(prefix)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return None
    return (parts.scheme, parts.hostname, port) if parts.hostname else None


def _origin(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of an address, or None when it has none."""
    scheme, _, rest = url.partition("://")
    return _origin_of_prefix(f"{scheme}://{rest.partition('/')[0].partition('?')[0]}") if rest else None
