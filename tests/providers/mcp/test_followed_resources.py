"""Resources that a legacy upstream is asked to tell of."""

from __future__ import annotations

from typing import Any

from tests.providers.mcp.connecting import connected_http
from tests.providers.mcp.scripted import Reply, Scripted, error
from tests.providers.mcp.serving import served

REFUSED = "test://b"


def subscribe(message: dict[str, Any]) -> Reply | dict[str, Any]:
    return error(-32002, "no such resource") if message["params"]["uri"] == REFUSED else {}


def steps(server: Scripted) -> list[tuple[str, str]]:
    asked = [message for _, _, message in server.seen if str(message.get("method")).endswith("subscribe")]
    return [(message["method"].rpartition("/")[2], message["params"]["uri"]) for message in asked]


async def test_a_resource_that_is_refused_keeps_no_other_from_being_followed() -> None:
    server = Scripted(era="legacy", resources__subscribe=subscribe, resources__unsubscribe={})
    with served(server) as url:
        async with connected_http(url, era="legacy") as there:
            await there.provider.follow(frozenset({"test://a", REFUSED, "test://c"}))
            await there.provider.follow(frozenset({"test://c"}))
            await there.provider.start()
    assert steps(server) == [
        ("subscribe", "test://a"),
        ("subscribe", REFUSED),
        ("subscribe", "test://c"),
        ("unsubscribe", "test://a"),
        ("unsubscribe", REFUSED),
        ("subscribe", "test://c"),
    ]
