"""`/providers`: where tools come from, how each is doing, and adding an MCP server."""

from __future__ import annotations

import re
import shlex
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import Response

from toolyard.core.errors import BadInput, NotFound, ProviderError, ToolyardError
from toolyard.core.names import check_namespace
from toolyard.core.principal import Scope
from toolyard.faces.console.inbox import follow_with_inbox
from toolyard.faces.console.rendering import path_part
from toolyard.faces.console.visit import Visit
from toolyard.manifest import McpConfig, Secret
from toolyard.providers.supervisor import ProviderStatus

_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*:\s*(\S.*)")
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)")


async def index(visit: Visit) -> Response:
    return visit.page("providers.html", **_state(visit), kept={}, error=None)


async def live(visit: Visit) -> Response:
    async def draw() -> str:
        return visit.html("parts/providers_live.html", **_state(visit))

    return follow_with_inbox(visit, ("provider", "catalog"), draw, at_most_every=0.5)


def _state(visit: Visit) -> dict[str, Any]:
    return {
        "statuses": sorted(visit.app.supervisor.statuses(), key=lambda status: status.id),
        "declared": {status.id for status in visit.app.supervisor.statuses() if not _is_removable(visit, status.id)},
        "may_manage": visit.principal.may(Scope.MANAGE),
    }


def _is_removable(visit: Visit, provider_id: str) -> bool:
    return visit.app.provider_config(provider_id) is not None and not visit.app.is_declared(provider_id)


async def add(visit: Visit) -> Response:
    try:
        await visit.app.add_provider(_config(visit))
    except ToolyardError as error:
        kept = {name: visit.posted.get(name) for name in ("id", "way", "url", "command", "env", "headers")}
        told = {"message": error.message, "suggestion": error.suggestion, "where": getattr(error, "where", None)}
        return visit.page("providers.html", code=422, **_state(visit), kept=kept, error=told)
    return visit.go("/providers?notice=provider-added")


def _config(visit: Visit) -> McpConfig:
    """
    Raises:
        BadInput: a field of the form cannot be accepted.
    """
    posted = visit.posted
    provider_id = check_namespace(posted.get("id"))
    if posted.get("way") == "command":
        try:
            command = tuple(shlex.split(posted.get("command")))
        except ValueError as error:
            raise BadInput(
                f"The command cannot be read: {error}.", where="command", suggestion="Check its quotes."
            ) from None
        if not command:
            raise BadInput("There is no command.", where="command", suggestion="Write it as in a terminal.")
        env = _pairs(posted.get("env"), _VARIABLE, "env", "NAME=value")
        return McpConfig(id=provider_id, command=command, env={name: Secret(value) for name, value in env})
    url = posted.get("url")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(
            f"{url[:200]!r} is no address of an MCP server.",
            where="url",
            suggestion="Give the full address, such as https://tools.example.com/mcp.",
        )
    headers = _pairs(posted.get("headers"), _HEADER, "headers", "Name: value")
    return McpConfig(id=provider_id, url=url, headers={name: Secret(value) for name, value in headers})


def _pairs(text: str, form: re.Pattern[str], where: str, example: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            match = form.fullmatch(line.strip())
            if match is None:
                # The line may hold a secret: say where it is, not what it says.
                raise BadInput(f"Line {number} is not of the form {example}.", where=where, suggestion="One per line.")
            found.append((match[1], match[2]))
    return found


async def refresh(visit: Visit) -> Response:
    try:
        await visit.app.refresh_provider(_status(visit).id)
    except ProviderError as error:
        told = {"message": error.message, "suggestion": error.suggestion, "where": None}
        return visit.page("providers.html", code=502, **_state(visit), kept={}, error=told)
    return visit.go("/providers?notice=provider-refreshed")


async def ask_to_remove(visit: Visit) -> Response:
    return visit.page("remove_provider.html", provider=_status(visit))


async def remove(visit: Visit) -> Response:
    await visit.app.remove_provider(_status(visit).id)
    return visit.go("/providers?notice=provider-removed")


def _status(visit: Visit) -> ProviderStatus:
    provider_id = visit.part("provider")
    found = next((status for status in visit.app.supervisor.statuses() if status.id == provider_id), None)
    if found is None:
        raise NotFound(
            f"There is no provider {path_part(provider_id)[:100]!r}.", suggestion="It may be removed already."
        )
    return found
