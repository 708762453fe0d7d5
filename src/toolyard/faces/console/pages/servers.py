"""`/servers`: the MCP endpoints, what each shows, exactly what its clients see, and agent mode tried by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import orjson
from starlette.responses import Response

from toolyard.app.servers import config_of, server_of
from toolyard.catalog import Server, View
from toolyard.catalog.server import selector
from toolyard.core.errors import BadInput, NotFound, ToolyardError
from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.principal import Scope
from toolyard.faces.console.forms.sources import pretty
from toolyard.faces.console.rendering import path_part
from toolyard.faces.console.visit import Posted, Visit
from toolyard.manifest import dump_server, parse_server

MOST_SHOWN = 200
"""Tools on one page; the list that clients get goes on."""
_MOST_MATCHES = 50
"""Tools named under the patterns while they are typed."""
_TEXTS = ("title", "description")
_SWITCHES = ("agent_mode", "retrieve_skill", "token_in_url")


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line of the tool patterns, and how many tools it speaks of."""

    text: str
    count: int


@dataclass(frozen=True, slots=True)
class Matches:
    """What a list of patterns shows: how many tools, and the first of them as (name for clients, id)."""

    patterns: Sequence[Pattern]
    tools: Sequence[tuple[str, str]]
    count: int


async def index(visit: Visit) -> Response:
    return _listed(visit)


async def create(visit: Visit) -> Response:
    posted = visit.posted
    body = {**_body(posted), "id": posted.get("id")}
    try:
        server = server_of(parse_server(body))
        if server.id in visit.app.servers:
            raise BadInput(f"There is a server {server.id!r} already.", where="id", suggestion="Choose another id.")
        await visit.app.save_server(server)
    except ToolyardError as error:
        return _listed(visit, kept={**_form(body), "id": posted.get("id")}, error=error)
    return visit.go(f"/servers/{path_part(server.id)}?notice=server-added")


async def show(visit: Visit) -> Response:
    return await _shown(visit, _server(visit))


async def save(visit: Visit) -> Response:
    server = _server(visit)
    body = {**_body(visit.posted), "id": server.id}
    beside = {name: value for name, value in dump_server(config_of(server)).items() if name not in _TEXTS}
    try:
        await visit.app.save_server(server_of(parse_server({**beside, **body})))
    except ToolyardError as error:
        return await _shown(visit, server, kept=_form(body), error=error)
    return visit.go(f"/servers/{path_part(server.id)}?notice=server-saved")


async def ask_to_remove(visit: Visit) -> Response:
    return visit.page("remove_server.html", server=_server(visit))


async def remove(visit: Visit) -> Response:
    await visit.app.delete_server(_server(visit).id)
    return visit.go("/servers?notice=server-removed")


async def attempt(visit: Visit) -> Response:
    """RESOLVE_ACTIONS or EXECUTE_ACTION as a client would call them; the call is on record as one."""
    server, posted = _server(visit), visit.posted
    name = "EXECUTE_ACTION" if posted.get("tool") == "EXECUTE_ACTION" else "RESOLVE_ACTIONS"
    arguments: JsonObject
    if name == "RESOLVE_ACTIONS":
        lines: list[JsonValue] = [line.strip() for line in posted.get("query").splitlines() if line.strip()]
        arguments = {"integration_query": lines}
    else:
        fields = ("application_slug", "action_id", "type")
        arguments = {**{field: posted.get(field) for field in fields}, "input_payload": posted.get("payload") or "{}"}
    agent = (
        server if server.agent_mode else server_of(parse_server({**dump_server(config_of(server)), "agent_mode": True}))
    )
    answer = await visit.ask_mcp(agent, visit.principal, "tools/call", {"name": name, "arguments": arguments})
    attempted = _attempted(name, arguments, answer)
    if visit.by_htmx:
        return visit.page("parts/attempt.html", **attempted)
    return await _shown(visit, server, attempted=attempted)


async def matches(visit: Visit) -> Response:
    """What the patterns of a form show as they stand: asked while somebody types."""
    return visit.page("parts/server_matches.html", matches=_matches(visit, _form(_body(visit.posted))))


def _attempted(name: str, arguments: JsonObject, answer: JsonObject) -> dict[str, Any]:
    result, error = answer.get("result"), answer.get("error")
    found: list[Any] = []
    if isinstance(result, Mapping):
        texts = [str(block.get("text")) for block in cast("list[JsonObject]", result.get("content") or [])]
        if name == "RESOLVE_ACTIONS" and texts and texts[0].startswith("["):
            found = orjson.loads(texts[0])
            texts = texts[1:]
        texts = [_readable(text) for text in texts]
    else:
        texts = [str(error.get("message")) if isinstance(error, Mapping) else "No answer."]
    failed = not isinstance(result, Mapping) or result.get("isError") is True
    return {"tool": name, "sent": pretty(arguments), "texts": texts, "found": found, "failed": failed}


def _readable(text: str) -> str:
    try:
        return pretty(orjson.loads(text))
    except orjson.JSONDecodeError:
        return text


def _listed(visit: Visit, *, kept: Mapping[str, Any] | None = None, error: ToolyardError | None = None) -> Response:
    servers = sorted(visit.app.servers.values(), key=lambda one: (one.id != "default", one.id))
    views = {one.id: visit.app.catalog.snapshot.view(one) for one in servers}
    return visit.page(
        "servers.html",
        code=422 if error else 200,
        servers=servers,
        counts={name: len(view.entries) for name, view in views.items()},
        declared={one.id for one in servers if visit.app.declares_server(one.id)},
        may_manage=visit.principal.may(Scope.MANAGE),
        kept=kept or {**_form({}), "id": ""},
        matches=_matches(visit, kept or _form({})),
        adding=kept is not None,
        error=_told(error),
    )


async def _shown(
    visit: Visit,
    server: Server,
    *,
    kept: Mapping[str, Any] | None = None,
    error: ToolyardError | None = None,
    attempted: Mapping[str, Any] | None = None,
) -> Response:
    kept = kept or _form(dump_server(config_of(server)))
    view = visit.app.catalog.snapshot.view(server)
    answer = await visit.ask_mcp(server, visit.principal, "tools/list", {})
    result = answer.get("result")
    tools = cast("list[JsonObject]", result.get("tools")) if isinstance(result, Mapping) else []
    return visit.page(
        "server.html",
        code=422 if error else 200,
        server=server,
        declared=visit.app.declares_server(server.id),
        may_manage=visit.principal.may(Scope.MANAGE) and server.id != "default",
        may_call=visit.principal.may(Scope.CALL),
        kept=kept,
        error=_told(error),
        matches=_matches(visit, kept),
        path=f"/servers/{path_part(server.id)}",
        query=visit.posted.get("query"),
        form={name: visit.posted.get(name) for name in ("application_slug", "action_id", "payload")},
        attempted=visit.html("parts/attempt.html", **attempted) if attempted else "",
        tools=[_seen(tool, view) for tool in tools[:MOST_SHOWN]],
        total=len(tools),
        more=isinstance(result, Mapping) and "nextCursor" in result,
        prompts=list(view.offers.prompts),
        resources=[*view.offers.resources, *view.offers.templates],
        skills=[one.name for one in visit.app.skills.entries if _shows_skill(server, one.name)],
        in_all=len(view.entries),
    )


def _seen(tool: JsonObject, view: View) -> dict[str, Any]:
    """A definition as it was sent, and the tool it stands for."""
    name = str(tool["name"])
    entry = view.by_direct_name(name)
    return {
        "name": name,
        "title": tool.get("title"),
        "description": tool.get("description") or "",
        "id": entry.id if entry is not None and not view.server.agent_mode else None,
        "wire": pretty(tool),
    }


def _matches(visit: Visit, form: Mapping[str, Any]) -> Matches:
    snapshot = visit.app.catalog.snapshot
    texts = tuple(_lines(form["tools"])) or ("*",)
    names: Literal["direct", "bare"] = "bare" if form["names"] == "bare" else "direct"
    view = View(Server("form", tools=texts, names=names), snapshot)
    ids = [entry.id for entry in snapshot.entries]
    patterns = [Pattern(text, sum(map(selector((text.removeprefix("!"),)), ids))) for text in texts[:_MOST_MATCHES]]
    shown = [(view.name_of(entry), entry.id) for entry in view.entries[:_MOST_MATCHES]]
    return Matches(patterns, shown, len(view.entries))


def _shows_skill(server: Server, name: str) -> bool:
    return selector(server.skills)(name) if server.skills else server.retrieve_skill


def _body(posted: Posted) -> dict[str, Any]:
    """The form as an entry of the manifest. An empty field is left out, which is its default."""
    body: dict[str, Any] = {name: True for name in _SWITCHES if posted.get(name)}
    body |= {name: False for name in _SWITCHES if not posted.get(name)}
    body["tools"] = _lines(posted.get("tools")) or ["*"]
    body["skills"] = _lines(posted.get("skills"))
    body["names"] = posted.get("names") or "direct"
    return body | {name: posted.get(name) for name in _TEXTS if posted.get(name)}


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _form(body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{name: body.get(name) or "" for name in _TEXTS},
        **{name: body.get(name) is True for name in _SWITCHES},
        "tools": "\n".join(body.get("tools") or ["*"]),
        "skills": "\n".join(body.get("skills") or []),
        "names": body.get("names") or "direct",
    }


def _told(error: ToolyardError | None) -> dict[str, Any] | None:
    if error is None:
        return None
    where = getattr(error, "where", None)
    return {
        "message": error.message,
        "suggestion": error.suggestion,
        "where": str(where).lstrip("/") if where else None,
    }


def _server(visit: Visit) -> Server:
    server = visit.app.servers.get(visit.part("server"))
    if server is None:
        raise NotFound(
            f"There is no server {visit.part('server')[:100]!r}.", suggestion="It may have been removed already."
        )
    return server
