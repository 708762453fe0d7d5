"""What a tool's prefix says about who runs it, who confirms it, and when."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.calls.waiting_yard import APPROVER, CALLER, LOCAL_OPERATOR, OTHER, Node, customizations, node
from tests.requirements import requirement
from toolyard.calls.follow_up import follow_up_arguments
from toolyard.core.approval import Gate
from toolyard.core.call import CallState, ToolResult
from toolyard.core.errors import CallError, ErrorCode, Forbidden
from toolyard.core.json import JsonObject
from toolyard.core.names import ToolClass, tool_classification
from toolyard.core.record import CallFilter, CallRecord
from toolyard.core.schema import Schema
from toolyard.core.tool import Tool
from toolyard.providers.base import Invocation


async def of_tool(n: Node, tool: str) -> list[CallRecord]:
    return list((await n.calls.page(CallFilter(tool=tool))).items)


@requirement("prefix.classes")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("search", ToolClass.STANDARD),
        ("_titleSession", ToolClass.INTERNAL),
        ("pre_delete", ToolClass.PRE),
        ("post_save", ToolClass.POST),
        ("priv_salary", ToolClass.PRIVATE),
        ("mcp_thing", ToolClass.MCP),
        ("prepare", ToolClass.STANDARD),
        ("poster", ToolClass.STANDARD),
        ("_pre_x", ToolClass.INTERNAL),
    ],
)
def test_every_prefix_has_its_class(name: str, kind: ToolClass) -> None:
    assert tool_classification(name) is kind
    assert Tool("crm", name, "").tool_class is kind


@requirement("prefix.classes")
async def test_a_private_tool_is_denied_with_the_reason_and_a_provider_tool_runs(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path) as n:
        denied = await n.call("crm:priv_salary", {"text": "a"}, principal=LOCAL_OPERATOR)
        assert denied.failure is not None
        assert denied.failure.code is ErrorCode.DENIED
        assert "begins with priv_, so it needs a one-time code (TOTP)" in denied.failure.message
        assert (await n.call("crm:mcp_thing", {"text": "a"})).state is CallState.COMPLETE


@requirement("approval.pre")
async def test_a_pre_tool_is_confirmed_by_the_sessions_own_user_and_by_nobody_else(
    database: str, tmp_path: Path
) -> None:
    async with node(database, tmp_path) as n:
        session = await n.sessions.create(CALLER, customizations())
        waiting = await n.call("crm:pre_delete", {"text": "a"}, session=session.id)
        gate = await n.gate(waiting.call_id)
        assert gate.gate is Gate.USER
        for somebody in (APPROVER, LOCAL_OPERATOR, OTHER):
            with pytest.raises(Forbidden, match="session's own user"):
                await n.approvals.decide(gate.id, decision="approve", principal=somebody)
        await n.approvals.decide(gate.id, decision="approve", principal=CALLER, scope="session")
        assert (await n.ended(waiting.call_id)).state is CallState.COMPLETE
        again = await n.call("crm:pre_delete", {"text": "b"}, session=session.id, hold=None)
        assert again.state is CallState.COMPLETE, "the user allowed it for the session"
        n.clusters["Ungrouped"] = False
        both = await n.call("crm:pre_delete", {"text": "c"}, session=session.id)
        assert (await n.gate(both.call_id)).gate is Gate.OPERATOR, "the user's word does not stand in for theirs"
        outside = await n.call("crm:pre_delete", {"text": "a"})
        assert outside.failure is not None
        assert outside.failure.code is ErrorCode.DENIED
        assert "belongs to no session" in outside.failure.message


@requirement("approval.pre")
async def test_a_clients_pre_tool_reaches_it_after_the_user_said_yes(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path) as n:
        session = await n.sessions.create(CALLER, customizations("pre_pay"))
        waiting = await n.call("client:pre_pay", {"city": "Rome"}, session=session.id)
        assert await n.clients.open(session.id, CALLER) == []
        await n.approvals.decide((await n.gate(waiting.call_id)).id, decision="approve", principal=CALLER)
        (found,) = await n.clients.open(session.id, CALLER, wait=10.0)
        assert found.request_id == waiting.call_id


@requirement("prefix.post")
async def test_post_x_runs_once_after_x_with_its_arguments_and_result(database: str, tmp_path: Path) -> None:
    async def run(invocation: Invocation) -> ToolResult:
        return ToolResult.of_text(f"{invocation.tool.name} done")

    async with node(database, tmp_path, run) as n:
        saved = await n.call("crm:save", {"text": "a"})
        (after,) = await of_tool(n, "crm:post_save")
        assert (await n.ended(after.id)).state is CallState.COMPLETE
        ran = {invocation.tool.name: dict(invocation.arguments) for invocation in n.provider.seen}
        assert ran == {"save": {"text": "a"}, "post_save": {"text": "a", "result": "save done"}}
        assert (await n.record(after.id)).details == {"after": saved.call_id}
        assert after.principal == "key:ci"
        assert await of_tool(n, "crm:post_post_save") == [], "a post_ tool triggers nothing"
        assert (await n.call("crm:post_save", {"text": "by hand"})).state is CallState.COMPLETE
        assert await of_tool(n, "crm:post_post_save") == []


@requirement("prefix.post")
async def test_a_failing_post_x_is_on_record_and_does_not_undo_x(database: str, tmp_path: Path) -> None:
    async def run(invocation: Invocation) -> ToolResult:
        if invocation.tool.name == "post_save":
            raise CallError(ErrorCode.UPSTREAM, "the mail server is down")
        return ToolResult.of_text("saved")

    async with node(database, tmp_path, run) as n:
        saved = await n.call("crm:save", {"text": "a"})
        (after,) = await of_tool(n, "crm:post_save")
        outcome = await n.ended(after.id)
        assert outcome.failure is not None
        assert outcome.failure.message == "the mail server is down"
        assert (await n.record(saved.call_id)).state is CallState.COMPLETE


@requirement("prefix.post")
async def test_nothing_follows_a_failed_x(database: str, tmp_path: Path) -> None:
    async def run(invocation: Invocation) -> ToolResult:
        return ToolResult.of_text("no", is_error=True)

    async with node(database, tmp_path, run) as n:
        assert (await n.call("crm:save", {"text": "a"})).state is CallState.ERROR
        assert await of_tool(n, "crm:post_save") == []


@requirement("prefix.post")
async def test_what_follows_an_approved_or_a_client_call_follows_too(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path) as n:
        session = await n.sessions.create(CALLER, customizations("book", "post_book", "post_read"))
        booked = await n.call("client:book", {"city": "Rome"}, session=session.id)
        await n.clients.respond(session.id, booked.call_id, CALLER, {"state": "COMPLETE", "places": ["x"]})
        (follow,) = await n.clients.open(session.id, CALLER, wait=10.0)
        assert (follow.name, follow.arguments) == ("post_book", {"city": "Rome", "sessionId": session.id})
        approved = await n.call("crm:read", {"text": "a"}, session=session.id, server="asking")
        await n.approvals.decide((await n.gate(approved.call_id)).id, decision="approve", principal=APPROVER)
        await n.ended(approved.call_id)
        (gated,) = await of_tool(n, "client:post_read")
        await n.approvals.decide((await n.gate(gated.id)).id, decision="approve", principal=APPROVER)
        outcome = await n.ended(gated.id)
        assert outcome.failure is not None
        assert "'city' is required" in outcome.failure.message, "what does not fit is on record as what it is"


@pytest.mark.parametrize(
    ("schema", "given"),
    [
        ({"type": "object"}, {"arguments": {"a": 1, "b": 2}, "result": 3}),
        ({"type": "object", "properties": {"b": {}}}, {"b": 2}),
        ({"type": "object", "properties": {"result": {}, "z": {}}}, {"result": 3}),
        ({"type": "object", "properties": {"arguments": {}}}, {"arguments": {"a": 1, "b": 2}}),
    ],
)
def test_post_x_is_given_what_it_declares(schema: JsonObject, given: JsonObject) -> None:
    tool = Tool("crm", "post_x", "", Schema(schema))
    assert follow_up_arguments(tool, {"a": 1, "b": 2}, 3, None) == given
