"""Deciding in the console: the queue, one request, edits, what was decided, and what a tool's page says about it."""

from __future__ import annotations

import re

import httpx2
import pytest

from tests.faces.console.asking import CALLER, Kennel, asked, ended, set_to_ask
from tests.faces.console.page import Page
from tests.faces.console.tools import SCRIPT, Hostile
from tests.requirements import requirement
from toolyard.app import App
from toolyard.catalog import ToolSettings
from toolyard.core.approval import ApprovalRecord, Decision
from toolyard.core.call import CallRequest, CallState, Origin
from toolyard.core.errors import ErrorCode
from toolyard.core.principal import LOCAL_OPERATOR, Scope

HTMX = {"HX-Request": "true"}
REX = {"name": "Rex", "age": 3}


@pytest.fixture
async def kennel(app: App) -> Kennel:
    provider = Kennel()
    await app.supervisor.add_and_start(provider)
    await set_to_ask(app, "kennel:walk", "kennel:sell")
    return provider


@pytest.fixture
async def request_(app: App, kennel: Kennel) -> ApprovalRecord:
    return await asked(app, "kennel:walk", REX)


def decision(record: ApprovalRecord, choice: str, csrf: str, **more: str) -> tuple[str, dict[str, str]]:
    return f"/approvals/{record.id}/decide", {"csrf": csrf, "decision": choice, **more}


async def post(
    client: httpx2.AsyncClient, where: tuple[str, dict[str, str]], *, by_htmx: bool = False
) -> httpx2.Response:
    return await client.post(where[0], data=where[1], headers=HTMX if by_htmx else {})


@requirement("approval.gate")
async def test_a_card_says_what_is_asked_by_whom_why_and_how_long(
    client: httpx2.AsyncClient, request_: ApprovalRecord
) -> None:
    page = Page.of(await client.get("/approvals"))
    card = page.by_id(f"wait-{request_.id}")
    text = " ".join(card.text.split())
    for expected in (
        "kennel:walk",
        CALLER.label,
        "through http",
        "Writes",
        "POST /dogs/Rex",
        "What it is called",
        request_.why,
        "4 min 5",
    ):
        assert expected in text, expected
    assert page.by_id(f"left-{request_.id}").text.strip().endswith("left")
    assert [row.text for row in page.all("span", class_="value")] == ["Rex", "3"]
    assert '"name": "Rex"' in text


async def test_every_page_says_in_its_menu_how_many_wait(
    app: App, client: httpx2.AsyncClient, request_: ApprovalRecord
) -> None:
    await asked(app, "kennel:walk", {"name": "Max"})
    for path in ("/", "/tools", "/keys", "/approvals/history"):
        assert Page.of(await client.get(path)).by_id("inbox").text.strip() == "2 waiting"


@requirement("approval.gate")
async def test_an_approved_call_runs(
    app: App, client: httpx2.AsyncClient, csrf: str, request_: ApprovalRecord, kennel: Kennel
) -> None:
    assert kennel.ran == []
    response = await post(client, decision(request_, "approve", csrf))
    assert (response.status_code, response.headers["location"]) == (303, "/approvals?notice=approved")
    assert (await ended(app, request_)).state is CallState.COMPLETE
    assert kennel.ran == [REX]
    page = Page.of(await client.get(f"/approvals/{request_.id}"))
    assert "Approved by you" in " ".join(page.by_id(f"done-{request_.id}").text.split())


@requirement("approval.gate")
async def test_a_rejected_call_does_not_run_and_its_caller_reads_the_reason(
    app: App, client: httpx2.AsyncClient, csrf: str, request_: ApprovalRecord, kennel: Kennel
) -> None:
    answer = await post(client, decision(request_, "reject", csrf, reason="It rains. Ask at noon."), by_htmx=True)
    assert "It rains. Ask at noon." in Page.of(answer).one("blockquote").text
    outcome = await ended(app, request_)
    assert outcome.failure is not None
    assert outcome.failure.code is ErrorCode.REJECTED
    assert "It rains. Ask at noon." in outcome.failure.message
    assert kennel.ran == []


async def test_a_decision_without_the_pages_token_is_refused(
    app: App, client: httpx2.AsyncClient, request_: ApprovalRecord
) -> None:
    assert (await post(client, decision(request_, "approve", "guess"))).status_code == 403
    assert not (await app.approvals.get(request_.id)).is_decided


async def test_a_destructive_call_is_approved_only_after_a_second_question(
    app: App, client: httpx2.AsyncClient, csrf: str, kennel: Kennel
) -> None:
    record = await asked(app, "kennel:sell", REX)
    for by_htmx in (False, True):
        question = Page.of(await post(client, decision(record, "approve", csrf, scope="session"), by_htmx=by_htmx))
        assert question.one("input", name="confirmed").attributes["value"] == "1"
        assert question.one("input", name="scope").attributes["value"] == "session"
        assert not (await app.approvals.get(record.id)).is_decided
    await post(client, decision(record, "approve", csrf, confirmed="1"))
    assert (await ended(app, record)).state is CallState.COMPLETE


async def test_who_comes_second_is_told_who_was_first(
    app: App, client: httpx2.AsyncClient, csrf: str, request_: ApprovalRecord
) -> None:
    await app.approvals.decide(request_.id, decision="reject", principal=LOCAL_OPERATOR, reason="No.")
    part = await post(client, decision(request_, "approve", csrf), by_htmx=True)
    whole = await post(client, decision(request_, "approve", csrf))
    for answer in (part, whole):
        assert answer.status_code == 200
        assert "Rejected by you" in " ".join(Page.of(answer).by_id(f"done-{request_.id}").text.split())
    assert (await app.approvals.get(request_.id)).decision is Decision.REJECT


@pytest.mark.parametrize("choice", ["", "maybe", "timeout"])
async def test_a_choice_that_is_none_changes_nothing(
    app: App, client: httpx2.AsyncClient, csrf: str, request_: ApprovalRecord, choice: str
) -> None:
    assert (await post(client, decision(request_, choice, csrf))).status_code == 422
    assert (await post(client, decision(request_, "reject", csrf, reason="x" * 2001))).status_code == 422
    assert not (await app.approvals.get(request_.id)).is_decided


async def test_an_unknown_approval_is_not_found(client: httpx2.AsyncClient, csrf: str, kennel: Kennel) -> None:
    for path in ("/approvals/apr_none", "/approvals/apr_none/edit", "/live/approvals/apr_none"):
        assert (await client.get(path)).status_code == 404, path
    assert (await client.post("/approvals/apr_none/decide", data={"csrf": csrf})).status_code == 404


async def test_hostile_words_in_a_request_stay_words(app: App, client: httpx2.AsyncClient, hostile: Hostile) -> None:
    tool = app.catalog.snapshot.entries[[e.tool.namespace for e in app.catalog.snapshot.entries].index("hostile")]
    await set_to_ask(app, tool.id)
    required = next(iter(tool.tool.input_schema.root["required"]))  # type: ignore[call-overload]
    record = await asked(app, tool.id, {str(required): SCRIPT, "free": {SCRIPT: [SCRIPT, {SCRIPT: 1}]}})
    for path in ("/approvals", f"/approvals/{record.id}", f"/approvals/{record.id}/edit"):
        response = await client.get(path)
        assert response.status_code == 200
        assert SCRIPT not in response.text
        assert SCRIPT in "".join(element.text for element in Page.of(response).all("main"))


@requirement("approval.edit")
async def test_the_edit_form_begins_with_the_arguments_and_shows_what_changes(
    client: httpx2.AsyncClient, csrf: str, request_: ApprovalRecord
) -> None:
    page = Page.of(await client.get(f"/approvals/{request_.id}/edit"))
    assert page.one("input", name="v/name").attributes["value"] == "Rex"
    assert "Nothing yet" in page.by_id("changes").text
    changed = {"csrf": csrf, "mode": "form", "v/name": "Rex", "v/age": "4"}
    shown = Page.of(await client.post(f"/approvals/{request_.id}/changes", data=changed, headers=HTMX))
    assert (shown.one("del").text, shown.one("ins").text) == ("3", "4")


@requirement("approval.edit")
async def test_a_call_runs_with_the_edited_arguments_and_both_versions_stay_on_record(
    app: App, client: httpx2.AsyncClient, csrf: str, request_: ApprovalRecord, kennel: Kennel
) -> None:
    edited = {"csrf": csrf, "mode": "json", "json-all": '{"name": "Rex", "age": 1}'}
    response = await client.post(f"/approvals/{request_.id}/edit", data=edited)
    assert response.headers["location"] == "/approvals?notice=approved-edited"
    assert (await ended(app, request_)).state is CallState.COMPLETE
    assert kennel.ran == [{"name": "Rex", "age": 1}]
    for path in (f"/approvals/{request_.id}", f"/calls/{request_.call_id}"):
        page = Page.of(await client.get(path))
        assert (page.one("del").text, page.one("ins").text) == ("3", "1"), path


@requirement("approval.edit")
@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"mode": "form", "v/name": "Rex", "v/age": "-1"}, "v/age"),
        ({"mode": "form", "v/name": "Rex", "v/age": "old"}, "v/age"),
        ({"mode": "form", "v/age": "1"}, "v/name"),
        ({"mode": "json", "json-all": '{"name": "Rex", "cat": 1}'}, "json-all"),
        ({"mode": "json", "json-all": "{"}, "json-all"),
    ],
)
async def test_an_edit_that_does_not_fit_is_shown_at_its_field_and_decides_nothing(
    app: App, client: httpx2.AsyncClient, request_: ApprovalRecord, fields: dict[str, str], place: str
) -> None:
    csrf = Page.of(await client.get("/keys")).csrf
    page = Page.of(await client.post(f"/approvals/{request_.id}/edit", data={"csrf": csrf, **fields}))
    field = next(e for e in page.elements if e.attributes.get("name") == place)
    assert field.attributes["aria-invalid"] == "true"
    assert page.by_id(field.attributes["aria-describedby"].split()[-1]).text.strip()
    assert not (await app.approvals.get(request_.id)).is_decided


async def test_an_edit_of_a_destructive_call_asks_once_more(
    app: App, client: httpx2.AsyncClient, csrf: str, kennel: Kennel
) -> None:
    record = await asked(app, "kennel:sell", REX)
    edited = {"csrf": csrf, "mode": "form", "v/name": "Rex", "v/age": "9"}
    question = await client.post(f"/approvals/{record.id}/edit", data=edited)
    assert Page.of(question).one("input", name="confirmed").attributes["value"] == "1"
    await client.post(f"/approvals/{record.id}/edit", data=edited | {"confirmed": "1"})
    await ended(app, record)
    assert kennel.ran == [{"name": "Rex", "age": 9}]


async def test_an_edit_that_comes_too_late_leads_to_the_decision(
    app: App, client: httpx2.AsyncClient, csrf: str, request_: ApprovalRecord
) -> None:
    await app.approvals.decide(request_.id, decision="reject", principal=LOCAL_OPERATOR)
    edited = {"csrf": csrf, "mode": "form", "v/name": "Max"}
    response = await client.post(f"/approvals/{request_.id}/edit", data=edited)
    assert response.headers["location"] == f"/approvals/{request_.id}"
    assert (await client.get(f"/approvals/{request_.id}/edit")).status_code == 303


async def test_allowed_for_the_session_means_that_nobody_is_asked_again(
    app: App, client: httpx2.AsyncClient, csrf: str, request_: ApprovalRecord, kennel: Kennel
) -> None:
    await post(client, decision(request_, "approve", csrf, scope="session"))
    await ended(app, request_)
    again = await app.calls.invoke(CallRequest("kennel:walk", {"name": "Max"}, CALLER, Origin.HTTP))
    assert again.state is CallState.COMPLETE


async def test_the_history_is_filtered_by_its_url(
    app: App, client: httpx2.AsyncClient, request_: ApprovalRecord
) -> None:
    other = await asked(app, "kennel:sell", REX)
    await app.approvals.decide(request_.id, decision="approve", principal=LOCAL_OPERATOR)
    await app.approvals.decide(other.id, decision="reject", principal=LOCAL_OPERATOR, reason="Not for sale.")

    async def shown(query: str) -> list[str]:
        page = Page.of(await client.get(f"/approvals/history{query}"))
        return [row.attributes["id"] for row in page.all("tr") if "id" in row.attributes]

    assert await shown("") == [other.id, request_.id]
    assert await shown("?decision=reject") == [other.id]
    assert await shown("?tool=kennel:walk") == [request_.id]
    assert await shown("?principal=key:ci&decided_by=local:local") == [other.id, request_.id]
    assert await shown("?decided_by=key:other") == []
    assert (await client.get("/approvals/history?decision=perhaps")).status_code == 422


async def test_a_waiting_call_says_so_on_its_page_and_links_to_its_request(
    client: httpx2.AsyncClient, request_: ApprovalRecord
) -> None:
    page = Page.of(await client.get(f"/calls/{request_.call_id}"))
    (link,) = page.all("a", href=f"/approvals/{request_.id}")
    assert "main" in link.inside


async def test_a_tool_that_is_gone_is_told_and_can_be_rejected(
    app: App, client: httpx2.AsyncClient, csrf: str, request_: ApprovalRecord
) -> None:
    await app.supervisor.remove("kennel")
    card = Page.of(await client.get("/approvals")).by_id(f"wait-{request_.id}")
    assert "no longer offers this tool" in card.text
    assert (await client.get(f"/approvals/{request_.id}/edit")).status_code == 404
    assert (await post(client, decision(request_, "reject", csrf))).status_code == 303


async def test_a_tools_page_says_whether_it_asks_and_why(
    app: App, client: httpx2.AsyncClient, csrf: str, kennel: Kennel
) -> None:
    async def policy() -> str:
        return " ".join(Page.of(await client.get("/tools/kennel:walk")).by_id("approval-hint").text.split())

    assert "an operator set kennel:walk to ask for each call" in await policy()
    fields = {
        "csrf": csrf,
        "enabled": "1",
        "time_limit": "",
        "description": "",
        "approval": "",
        "approval_timeout": "60",
        "task": "always",
    }
    assert (await client.post("/tool-settings/kennel:walk", data=fields)).status_code == 303
    entry = app.catalog.snapshot.get("kennel:walk")
    assert entry is not None
    assert entry.settings == ToolSettings(approval_timeout=60.0, task="always")
    assert "no policy asks for a decision" in await policy()
    for bad in ({"approval": "always"}, {"approval_timeout": "-1"}, {"task": "ask"}):
        assert (await client.post("/tool-settings/kennel:walk", data=fields | bad)).status_code == 422


@requirement("approval.gate")
async def test_a_cluster_can_ask_for_all_its_tools(app: App, client: httpx2.AsyncClient, csrf: str) -> None:
    await app.supervisor.add_and_start(Kennel())

    async def choose(word: str) -> tuple[int, str, str]:
        response = await client.post("/cluster-policy/Kennel", data={"csrf": csrf, "auto_approve": word})
        page = Page.of(await client.get("/cluster-policy/Kennel"))
        checked = next(e.attributes["value"] for e in page.all("input", type="radio") if "checked" in e.attributes)
        hint = Page.of(await client.get("/tools/kennel:walk")).by_id("approval-hint").text
        return response.status_code, checked, " ".join(hint.split())

    asks = "Now each call waits for a decision: the cluster 'Kennel' asks for each call"
    assert await choose("false") == (303, "false", f"{asks}.")
    assert await choose("read_only") == (303, "read_only", f"{asks} that may change something.")
    assert await choose("true") == (303, "true", "Now nobody is asked: the cluster 'Kennel' approves every call.")
    assert await choose("") == (303, "", "Now nobody is asked: no policy asks for a decision.")
    assert (await choose("perhaps"))[:2] == (422, "")


async def test_who_may_only_call_sees_no_requests(
    app: App, client: httpx2.AsyncClient, request_: ApprovalRecord
) -> None:
    _, secret = await app.keys.create("caller", frozenset({Scope.CALL}))
    headers = {"Authorization": f"Bearer {secret}"}
    assert (await client.get("/approvals", headers=headers)).status_code == 403
    page = await client.get("/tools", headers=headers)
    assert page.status_code == 200
    assert Page.of(page).by_id("inbox").text.strip() == ""


def test_time_left_is_told_in_steps_that_a_page_keeps_up_with() -> None:
    from toolyard.faces.console.rendering import left

    told = [left(seconds) for seconds in (-5, 0.4, 12, 75.9, 3700, 90_000, 200_000)]
    assert told == [
        "Time is up", "Time is up", "12 s left", "1 min 15 s left", "1 h 1 min left", "25 h 0 min left", "2 days left",
    ]  # fmt: skip
    assert not [text for text in told if re.search(r"\d\.\d", text)]
