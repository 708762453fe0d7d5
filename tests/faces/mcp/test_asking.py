"""Tools that ask their caller, and approvals that a caller can see to, through clients of both eras."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

from tests.faces.mcp.conftest import Yard
from tests.faces.mcp.test_sdk_clients import MODES, connected
from tests.requirements import requirement
from toolyard.core.approval import Decision
from toolyard.core.call import ToolResult
from toolyard.core.question import ELICITATION, ROOTS, SAMPLING, NeedsInput, Question
from toolyard.core.schema import Schema
from toolyard.core.tool import Annotations
from toolyard.providers.base import Invocation

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
NAME = Question("name", ELICITATION, {"mode": "form", "message": "Who are you?", "requestedSchema": FORM})
POEM = Question(
    "poem", SAMPLING, {"messages": [{"role": "user", "content": {"type": "text", "text": "a line"}}], "maxTokens": 20}
)
PLACES = Question("places", ROOTS, {})


async def held(invocation: Invocation) -> ToolResult:
    """As a legacy upstream, or a Python function."""
    assert invocation.ask is not None
    first = await invocation.ask([NAME])
    second = await invocation.ask([POEM, PLACES])
    return ToolResult.of_value({**first, **second})


async def in_rounds(invocation: Invocation) -> ToolResult:
    """As a modern upstream."""
    if not invocation.answers:
        raise NeedsInput([NAME], "one")
    if invocation.upstream_state == "one":
        raise NeedsInput([POEM, PLACES], "two:" + str(invocation.answers["name"]["content"]["name"]))  # type: ignore[index]
    assert invocation.upstream_state is not None
    name = {"action": "accept", "content": {"name": invocation.upstream_state.partition(":")[2]}}
    return ToolResult.of_value({"name": name, **invocation.answers})


class Person:
    """Answers what the client is asked, and remembers it."""

    def __init__(self, action: Literal["accept", "decline", "cancel"] = "accept", **content: Any) -> None:
        self.asked: list[Any] = []
        self._action: Literal["accept", "decline", "cancel"] = action
        self._content = content or {"name": "Ada"}

    async def elicit(self, context: Any, params: Any) -> Any:
        from mcp.types import ElicitResult

        self.asked.append(params)
        return ElicitResult(action=self._action, content=self._content if self._action == "accept" else None)

    async def sample(self, context: Any, params: Any) -> Any:
        from mcp.types import CreateMessageResult, TextContent

        self.asked.append(params)
        return CreateMessageResult(role="assistant", model="m", content=TextContent(type="text", text="A line."))

    async def roots(self, context: Any) -> Any:
        from mcp.types import ListRootsResult, Root

        self.asked.append("roots")
        return ListRootsResult(roots=[Root.model_validate({"uri": "file:///srv"})])

    @property
    def callbacks(self) -> dict[str, Any]:
        return {
            "elicitation_callback": self.elicit,
            "sampling_callback": self.sample,
            "list_roots_callback": self.roots,
        }


@requirement("mcp.bridge")
@pytest.mark.parametrize("behaviour", [held, in_rounds])
@pytest.mark.parametrize("mode", MODES)
async def test_every_kind_of_question_reaches_a_client_of_either_era(
    yard: Yard, url: str, mode: str, behaviour: Any
) -> None:
    yard.provider.add("ask", behaviour)
    await yard.app.supervisor.refresh("kit")
    person = Person()
    async with asyncio.timeout(20), connected(url, mode, **person.callbacks) as client:
        result = await client.call_tool("kit_ask_action", {})
    assert result.is_error is False, result
    answers = result.structured_content
    assert answers["name"] == {"action": "accept", "content": {"name": "Ada"}}
    assert answers["poem"]["content"]["text"] == "A line."
    assert answers["places"]["roots"][0]["uri"] == "file:///srv"
    assert person.asked[0].message == "Who are you?"
    assert len(person.asked) == 3


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_can_answer_nothing_gets_a_clear_error_or_is_declined(
    yard: Yard, url: str, mode: str
) -> None:
    async def declines(invocation: Invocation) -> ToolResult:
        assert invocation.ask is None
        raise NeedsInput([NAME], None)

    yard.provider.add("ask", declines)
    await yard.app.supervisor.refresh("kit")
    async with asyncio.timeout(20), connected(url, mode) as client:
        result = await client.call_tool("kit_ask_action", {})
    assert result.is_error
    assert "elicitation" in result.content[0].text


@requirement("mcp.approval")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("agrees", [True, False])
async def test_the_callers_own_user_confirms_by_a_form(yard: Yard, url: str, mode: str, agrees: bool) -> None:
    ran: list[str] = []

    async def wipe(invocation: Invocation) -> ToolResult:
        ran.append(invocation.call_id)
        return ToolResult.of_text("wiped")

    yard.provider.add("pre_wipe", wipe, input_schema=Schema({"type": "object"}))
    await yard.app.supervisor.refresh("kit")
    person = Person(approve=agrees)
    async with asyncio.timeout(20), connected(url, mode, **person.callbacks) as client:
        result = await client.call_tool("kit_pre_wipe_action", {})
    assert (result.is_error, len(ran)) == ((False, 1) if agrees else (True, 0))
    (asked,) = person.asked
    assert "kit:pre_wipe" in asked.message


@requirement("mcp.approval")
@pytest.mark.parametrize("mode", MODES)
async def test_an_operators_decision_is_a_link_and_no_answer_of_the_client_decides_it(
    yard: Yard, url: str, mode: str
) -> None:
    from toolyard.catalog import ToolSettings
    from toolyard.core.principal import LOCAL_OPERATOR

    async def send(invocation: Invocation) -> ToolResult:
        return ToolResult.of_text("sent")

    yard.provider.add("send", send, annotations=Annotations())
    await yard.app.supervisor.refresh("kit")
    await yard.app.set_tool_settings("kit:send", ToolSettings(approval="ask"))
    person = Person(approve=True)
    links: list[str] = []
    pending = asyncio.Event()
    plain = person.elicit

    async def follow_link(context: Any, params: Any) -> Any:
        answer = await plain(context, params)
        links.append(str(params.url))
        pending.set()
        return answer

    person.elicit = follow_link  # type: ignore[method-assign]
    async with asyncio.timeout(30), connected(url, mode, **person.callbacks) as client:
        calling = asyncio.create_task(client.call_tool("kit_send_action", {}))
        await pending.wait()
        (gate,) = (await yard.app.approvals.page("pending")).items
        assert gate.decision is None
        assert f"/approvals/{gate.id}" in links[0]
        await yard.app.approvals.decide(gate.id, decision="approve", principal=LOCAL_OPERATOR)
        result = await calling
    assert (result.is_error, result.content[0].text) == (False, "sent")
    assert (await yard.app.approvals.get(gate.id)).decision is Decision.APPROVE
