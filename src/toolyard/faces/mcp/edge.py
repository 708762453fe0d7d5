"""The HTTP edge: raw ASGI, both eras on one URL. One request goes through here, cheapest refusal first.

Host and Origin -> HTTP method -> content type -> who is asking -> which server -> body -> era -> that era's own
checks -> the method. Who is asking is settled before the body is read, so that a stranger costs us no parsing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import structlog

from toolyard.catalog import Server
from toolyard.core.errors import Forbidden, Unauthenticated
from toolyard.core.json import JsonObject
from toolyard.core.principal import Principal, Scope
from toolyard.faces.mcp import headers as mirrored
from toolyard.faces.mcp.asking import answered
from toolyard.faces.mcp.classify import (
    NO_META,
    capabilities_in,
    check_version,
    classify,
    is_modern,
    meta_of,
    params_of,
)
from toolyard.faces.mcp.exchange import Exchange, HeaderList, Receive, Send, reply, reply_json
from toolyard.faces.mcp.face import DEFAULT_SERVER, Context, Face, FaceApp, Running
from toolyard.faces.mcp.guard import HostGuard
from toolyard.faces.mcp.headers import Headers, RawHeaders
from toolyard.faces.mcp.methods import method_for
from toolyard.faces.mcp.sessions import Session
from toolyard.faces.mcp.subscriptions import list_changed, session_followed
from toolyard.faces.mcp.wire import (
    H_SESSION,
    H_VERSION,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    META_VERSION,
    MODERN,
    Era,
    RequestId,
    RpcError,
    parse,
    request_id_of,
    response,
)

TOKEN_PATH = "/t/"  # noqa: S105 - a path
MOST_BODY_BYTES = 4 * 1024 * 1024
_log = structlog.stdlib.get_logger("toolyard.faces.mcp")
_NO_AUTHORIZATION_SERVER = "No authorization server is needed here: send an API key as 'Authorization: Bearer <key>'."
_ALLOW = (b"allow", b"POST, GET, DELETE")
_MODERN_ALLOW = (b"allow", b"POST")


class _Gone(Exception):
    """The client left before its request was read."""


@dataclass(slots=True)
class _Caller:
    """Whose request it is, for which server, and the headers it came with."""

    principal: Principal
    server: Server
    headers: Headers
    raw_headers: RawHeaders


class Edge:
    """`/mcp` is the default server, `/mcp/{server}` any other; `/mcp/{server}/t/{key}` where that is switched on."""

    def __init__(self, face: Face, guard: HostGuard) -> None:
        self.face = face
        self._guard = guard
        self._accepts: dict[bytes | None, tuple[bool, bool]] = {}

    async def asked(self, server: Server, principal: Principal, method: str, params: JsonObject) -> JsonObject:
        """What a modern client of this principal would be answered: the JSON-RPC response."""
        ctx = Context(
            face=self.face,
            era=Era.MODERN,
            version=MODERN,
            principal=principal,
            server=server,
            request_id="console",
            meta=NO_META,
            push=_nowhere,
            may_stream=False,
        )
        _, frame = await answer(ctx, method, params)
        return parse(frame)

    def close(self) -> None:
        """End the standing streams, so that the server can stop."""
        self.face.close()

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers: Headers = dict(scope["headers"])
        try:
            self._guard.check(headers.get(b"host"), headers.get(b"origin"))
            if not scope["path"].startswith("/mcp"):
                raise RpcError(INVALID_REQUEST, _NO_AUTHORIZATION_SERVER, status=404)
            match scope["method"]:
                case "POST":
                    await self._post(scope, headers, receive, send)
                case "GET":
                    await self._get(scope, headers, receive, send)
                case "DELETE":
                    await self._delete(scope, headers, send)
                case _:
                    await _refuse_method(send, _ALLOW)
        except RpcError as error:
            await reply_json(send, error.http_status(None), error.to_bytes(None))
        except Unauthenticated as error:
            challenge = b'Bearer realm="toolyard", scope="call"'
            if b"authorization" in headers:
                challenge += b', error="invalid_token"'
            await _refuse(send, 401, str(error), [(b"www-authenticate", challenge)])
        except Forbidden as error:
            challenge = b'Bearer realm="toolyard", error="insufficient_scope", scope="call"'
            await _refuse(send, 403, str(error), [(b"www-authenticate", challenge)])
        except _Gone:
            return

    async def _post(self, scope: Mapping[str, Any], headers: Headers, receive: Receive, send: Send) -> None:
        _check_content_type(headers.get(b"content-type"))
        json, stream = self._accepted(headers.get(b"accept"))
        caller = await self._caller(scope, headers)
        message = parse(await _body(headers, receive))
        if "id" not in message or "method" not in message:
            await self._notified(message, caller)
            await reply(send, 202, b"", [])
            return
        request_id = request_id_of(message)
        running = Running()
        try:
            ctx = await self._context(message, request_id, caller, running)
            method = method_for(message["method"], ctx.era)
            if method.streams and not stream:
                raise RpcError(INVALID_REQUEST, "This method answers with text/event-stream only.", status=406)
        except RpcError as error:
            await reply_json(send, error.http_status(_era_of(message)), error.to_bytes(request_id))
            return
        exchange = Exchange(
            receive, send, running, json=json, may_stream=stream, disconnect_cancels=ctx.era is Era.MODERN
        )
        ctx.push = exchange.push
        ctx.may_stream = stream
        mark = (ctx.session.nonce, request_id) if ctx.session is not None else None
        if mark is not None:
            self.face.running[mark] = running
        try:
            status, frame = await answer(ctx, message["method"], message.get("params") or {})
            extra: HeaderList = []
            if ctx.new_session_id is not None:
                extra.append((H_SESSION, ctx.new_session_id.encode()))
            await exchange.finish(status, None if running.cancelled else frame, extra, request_id)
        finally:
            exchange.close()
            if mark is not None and self.face.running.get(mark) is running:
                del self.face.running[mark]

    async def _context(
        self, message: Mapping[str, Any], request_id: RequestId, caller: _Caller, running: Running
    ) -> Context:
        """
        Raises:
            RpcError: the request fails its era's checks.
        """
        method = message["method"]
        if not isinstance(method, str):
            raise RpcError(INVALID_REQUEST, "method must be a string.", status=400)
        params = params_of(message)
        meta = meta_of(params) if params else NO_META
        session_id = caller.headers.get(H_SESSION)
        route = classify(method, meta, caller.headers.get(H_VERSION), session_id)
        ctx = Context(
            face=self.face,
            era=route.era,
            version=route.version or "",
            principal=caller.principal,
            server=caller.server,
            request_id=request_id,
            meta=meta,
            push=_nowhere,
            running=running,
            headers=caller.headers,
            raw_headers=caller.raw_headers,
        )
        if route.era is Era.MODERN:
            ctx.capabilities = capabilities_in(meta)
            mirrored.check_routing(method, route.version, params, caller.headers, caller.raw_headers)
            check_version(route)
        elif method != "initialize" and session_id is not None:
            ctx.session = await self._session(session_id, caller)
            ctx.version = route.version or ctx.session.version
        return ctx

    async def _notified(self, message: Mapping[str, Any], caller: _Caller) -> None:
        """A notification, or a legacy client's response to a question of ours.

        Modern clients have nothing to notify us of: theirs are taken and dropped, as the specification allows.
        """
        method = message.get("method")
        params = params_of(message)
        meta = meta_of(params)
        version = caller.headers.get(H_VERSION)
        if method is None and "result" not in message and "error" not in message:
            raise RpcError(
                INVALID_REQUEST, "This is neither a request, nor a notification, nor a response.", status=400
            )
        if is_modern(version) or META_VERSION in meta:
            if method is None:
                raise RpcError(INVALID_REQUEST, "A modern client posts requests, never responses.", status=400)
            return
        session_id = caller.headers.get(H_SESSION)
        classify("notification", meta, version, session_id)
        session = await self._session(session_id or b"", caller)
        if method is None:
            await answered(self.face.app, message, caller.principal)
        elif method == "notifications/cancelled":
            request_id = params.get("requestId")
            running = self.face.running.get((session.nonce, request_id)) if isinstance(request_id, str | int) else None
            if running is not None:
                await running.end()

    async def _get(self, scope: Mapping[str, Any], headers: Headers, receive: Receive, send: Send) -> None:
        """A legacy session's stream for what concerns no request: lists that changed, resources it follows."""
        session_id = headers.get(H_SESSION)
        if session_id is None or is_modern(headers.get(H_VERSION)):
            await _refuse_method(send, _MODERN_ALLOW)
            return
        caller = await self._caller(scope, headers)
        session = await self._session(session_id, caller)
        if not self._accepted(headers.get(b"accept"))[1]:
            raise RpcError(INVALID_REQUEST, "This stream is text/event-stream; accept it.", status=406)
        running = Running()
        exchange = Exchange(receive, send, running, json=False, may_stream=True, disconnect_cancels=True)
        subscription = self.face.changes.subscribe(caller.server, session=session.nonce)
        running.cancel = subscription.cancel
        try:
            exchange.open()
            async with session_followed(self.face, self.face.view(caller.server), session, exchange.push):
                async for changed in subscription:
                    for kind in sorted(changed):
                        exchange.push(list_changed(kind))
            await exchange.finish(200, None, [], None)
        finally:
            self.face.changes.unsubscribe(subscription)
            exchange.close()

    async def _delete(self, scope: Mapping[str, Any], headers: Headers, send: Send) -> None:
        session_id = headers.get(H_SESSION)
        if session_id is None or is_modern(headers.get(H_VERSION)):
            await _refuse_method(send, _MODERN_ALLOW)
            return
        caller = await self._caller(scope, headers)
        session = await self._session(session_id, caller)
        await self.face.sessions.end(session_id, session)
        self.face.changes.end_session(session.nonce)
        await reply(send, 204, b"", [])

    async def _caller(self, scope: Mapping[str, Any], headers: Headers) -> _Caller:
        path, in_path, token = scope["path"].partition(TOKEN_PATH)
        if in_path:
            scope = self._with_token(scope, path, token.rstrip("/"))
        principal = await self.face.app.gate.principal(scope)
        principal.require(Scope.CALL)
        return _Caller(principal, self._server(path), headers, scope["headers"])

    def _with_token(self, scope: Mapping[str, Any], path: str, token: str) -> Mapping[str, Any]:
        """The request as if its key had come in the header. Whether a server is there is told to nobody without one.

        Raises:
            Unauthenticated: this server takes no key from the path.
        """
        server = self.face.app.servers.get(path.strip("/").partition("/")[2] or DEFAULT_SERVER)
        if server is None or not server.token_in_url or not token:
            raise Unauthenticated(
                "No key is taken from the path here.", suggestion="Send it as 'Authorization: Bearer <key>'."
            )
        if b"authorization" in dict(scope["headers"]):
            return scope
        header = (b"authorization", b"Bearer " + token.encode())
        return {**scope, "headers": [*scope["headers"], header]}

    async def _session(self, session_id: bytes, caller: _Caller) -> Session:
        return await self.face.sessions.verify(session_id, server=caller.server.id, principal=caller.principal)

    def _server(self, path: str) -> Server:
        root, _, server_id = path.strip("/").partition("/")
        server = self.face.app.servers.get(server_id or DEFAULT_SERVER) if root == "mcp" else None
        if server is None:
            raise RpcError(INVALID_REQUEST, f"There is no MCP server at {path!r}.", status=404)
        return server

    def _accepted(self, accept: bytes | None) -> tuple[bool, bool]:
        """Whether the client takes JSON, and whether it takes an event stream.

        Raises:
            RpcError: neither (406).
        """
        known = self._accepts.get(accept)
        if known is None:
            known = _parse_accept(accept)
            if len(self._accepts) < 100:
                self._accepts[accept] = known
        if known == (False, False):
            raise RpcError(INVALID_REQUEST, "Accept application/json and text/event-stream.", status=406)
        return known


async def answer(ctx: Context, method: str, params: Mapping[str, Any]) -> tuple[int, bytes]:
    """Run one method: the HTTP status and the response's frame. Both transports end here."""
    try:
        return 200, response(ctx.request_id, await method_for(method, ctx.era).handler(ctx, params))
    except RpcError as error:
        return error.http_status(ctx.era), error.to_bytes(ctx.request_id)
    except Exception:  # noqa: BLE001 - the top-level handler: one broken request must not cost its connection
        _log.exception("an MCP method failed", method=method, server=ctx.server.id)
        error = RpcError(INTERNAL_ERROR, "Something went wrong inside Toolyard; its log says what.")
        return error.http_status(ctx.era), error.to_bytes(ctx.request_id)


def _era_of(message: Mapping[str, Any]) -> Era:
    """For the status of an error found while the era was being decided: a legacy request has no `_meta` version."""
    with suppress(RpcError):
        if META_VERSION in meta_of(params_of(message)):
            return Era.MODERN
    return Era.LEGACY


def _check_content_type(value: bytes | None) -> None:
    if value == b"application/json":
        return
    if value is None or value.partition(b";")[0].strip().lower() != b"application/json":
        raise RpcError(INVALID_REQUEST, "Send the body as Content-Type: application/json.", status=415)


def _parse_accept(accept: bytes | None) -> tuple[bool, bool]:
    if accept is None:
        return True, False
    kinds = {part.partition(b";")[0].strip().lower() for part in accept.split(b",")}
    anything = b"*/*" in kinds
    return (
        anything or b"application/json" in kinds or b"application/*" in kinds,
        anything or b"text/event-stream" in kinds or b"text/*" in kinds,
    )


async def _body(headers: Headers, receive: Receive) -> bytes:
    """
    Raises:
        RpcError: more than `MOST_BODY_BYTES` (413).
    """
    length = headers.get(b"content-length", b"0")
    if len(length) > 6 and length.isdigit() and int(length) > MOST_BODY_BYTES:
        raise _too_large()
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        part = message.get("body", b"")
        size += len(part)
        if size > MOST_BODY_BYTES:
            raise _too_large()
        parts.append(part)
        if not message.get("more_body"):
            return part if len(parts) == 1 else b"".join(parts)


def _too_large() -> RpcError:
    return RpcError(INVALID_REQUEST, f"The body is larger than {MOST_BODY_BYTES} bytes.", status=413)


def _nowhere(_frame: bytes) -> None:
    """Until an answer's stream exists there is nowhere to push to."""


async def _refuse(send: Send, status: int, message: str, headers: HeaderList) -> None:
    await reply_json(send, status, RpcError(INVALID_REQUEST, message).to_bytes(None), headers)


async def _refuse_method(send: Send, allow: tuple[bytes, bytes]) -> None:
    message = "MCP is spoken here by POST; GET and DELETE belong to a legacy session and name it in Mcp-Session-Id."
    await _refuse(send, 405, message, [allow])


def build(app: FaceApp, *, allowed_hosts: tuple[str, ...] = ()) -> Edge:
    """The face as an ASGI application.

    Hosts and origins that are let in: the loopback names, the public URL's, the address that is listened on, and
    `allowed_hosts` (`*` for all, behind a proxy that checks).
    """
    return Edge(Face(app), HostGuard((app.settings.url, app.settings.host, *allowed_hosts)))
