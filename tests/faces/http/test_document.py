"""Our own OpenAPI document, taken at its word: requests made from it, answers checked against it."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import booleans

from tests.faces.http.test_client_tools import LOCATIONS, customizations
from tests.faces.http.tools import YardTools
from toolyard.app import App
from toolyard.catalog import Server, ToolSettings
from toolyard.core.principal import Scope
from toolyard.faces.asgi import build
from toolyard.serving import listening_socket, serving

EXAMPLES = 8
NOT_ASKED = {"/v1/events"}
"""The stream never ends."""
WAITS = {
    "/v1/tools/{tool_id}/call",
    "/v1/sessions/{session_id}/tools/{name}/call",
    "/v1/tools/requests/{session_id}",
    "/v1/calls/{call_id}",
}
DEFAULT_WAIT = 30
SESSION = customizations(LOCATIONS)["customizations"]
NOWHERE = "http://127.0.0.1:9/x"
"""In place of made-up addresses: the test asks no name server."""


def _exercise(document: dict[str, Any], base_url: str, key: str, known: Mapping[str, str]) -> dict[str, set[int]]:
    """Send a few requests per operation; returns what each answered."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import schemathesis
        from schemathesis.checks import not_a_server_error
        from schemathesis.specs.openapi.checks import (
            content_type_conformance,
            response_schema_conformance,
            status_code_conformance,
        )
    checks = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
    answered: dict[str, set[int]] = {}

    def ask(case: Any) -> None:
        if isinstance(case.body, dict) and "url" in case.body:
            case.body["url"] = NOWHERE
        if isinstance(case.query.get("wait", DEFAULT_WAIT), int | float) and case.operation.path in WAITS:
            case.query["wait"] = 0
        response = case.call_and_validate(base_url=base_url, checks=checks, headers={"Authorization": f"Bearer {key}"})
        answered.setdefault(case.operation.label, set()).add(response.status_code)

    for result in schemathesis.openapi.from_dict(document).get_all_operations():
        operation: Any = result.ok()  # type: ignore[union-attr]  # an Err would say which part of our document is bad
        if operation.path in NOT_ASKED:
            continue
        _try(operation, known, ask)
    return answered


def _try(operation: Any, known: Mapping[str, str], ask: Callable[[Any], object]) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    @given(case=operation.as_strategy(), there=booleans())
    def every(case: Any, there: bool) -> None:
        if there:  # else everything would be a 404
            for name in case.path_parameters:
                case.path_parameters[name] = known.get(name, case.path_parameters[name])
        ask(case)

    every()


@pytest.mark.filterwarnings("ignore")
async def test_every_operation_answers_as_its_document_says(
    app: App, local: httpx2.AsyncClient, tools: YardTools
) -> None:
    document = (await local.get("/openapi.json")).json()
    bound = listening_socket("127.0.0.1", 0)
    tools.let_go.set()
    async with serving(build(app), bound):
        await app.save_server(Server("sales"))
        _, key = await app.keys.create("fuzz", [Scope.ADMIN])
        other, _ = await app.keys.create("other", [Scope.CALL])
        call = await local.post("/v1/tools/yard:echo/call", json={"arguments": {"text": "x"}})
        session = await app.sessions.create(await app.keys.verify(key), SESSION)
        await app.set_tool_settings("yard:write", ToolSettings(approval="ask"))
        waits = await local.post("/v1/tools/yard:write/call?wait=0", json={"arguments": {"text": "x"}})
        known = {
            "session_id": session.id,
            "request_id": call.json()["id"],
            "name": "getLocations",
            "approval_id": waits.json()["waiting"]["id"],
            "tool_id": "yard:echo",
            "server_id": "sales",
            "provider_id": "yard",
            "agent_id": "default",
            "call_id": call.json()["id"],
            "key_id": other.id,
        }
        answered = await asyncio.to_thread(
            _exercise, document, f"http://127.0.0.1:{bound.getsockname()[1]}", key, known
        )
    assert len(answered) > 20
    reached = [operation for operation, statuses in answered.items() if any(status < 300 for status in statuses)]
    assert len(reached) > 15, answered
