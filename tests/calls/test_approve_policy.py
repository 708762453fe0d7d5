"""Which policy asks, and why: the nearest one with an opinion."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calls.waiting_yard import CALLER
from tests.requirements import requirement
from toolyard.calls.approve import PolicyBook, ProviderPolicy, approve, operator_policy
from toolyard.catalog import Entry, Server, ToolSettings
from toolyard.core.approval import AutoApprove, Gate
from toolyard.core.call import CallRequest, Origin
from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.tool import Annotations, Tool

READS = Annotations(read_only=True)


def entry(*, approval: str | None = None, reads: bool = False, cluster: str | None = "Pets", **more: Any) -> Entry:
    tool = Tool("crm", "search", "", annotations=READS if reads else Annotations(), cluster=cluster)
    return Entry(tool, ToolSettings(approval=approval, **more))


def book(provider: AutoApprove = True, *, cluster: AutoApprove | None = None, server: AutoApprove = True) -> PolicyBook:
    return PolicyBook(
        {"crm": ProviderPolicy(provider, 60.0)}.get,
        {} if cluster is None else {"Pets": cluster},
        {"sales": Server("sales", auto_approve=server)},
    )


@requirement("approval.gate")
@pytest.mark.parametrize(
    ("policies", "tool", "asks", "reason"),
    [
        (book(), entry(), False, "no policy asks for a decision"),
        (book(False), entry(), True, "the provider 'crm' asks for each call"),
        (book("read_only"), entry(), True, "the provider 'crm' asks for each call that may change something"),
        (book("read_only"), entry(reads=True), False, "the provider 'crm' approves what only reads"),
        (book(False), entry(approval="never"), False, "an operator set crm:search to ask nobody"),
        (book(), entry(approval="ask", reads=True), True, "an operator set crm:search to ask for each call"),
        (book(), entry(approval="auto"), False, "no policy asks for a decision"),
        (book(False, cluster=True), entry(), False, "the cluster 'Pets' approves every call"),
        (book(cluster=False), entry(reads=True), True, "the cluster 'Pets' asks for each call"),
        (book(cluster=False), entry(cluster="Others"), False, "no policy asks for a decision"),
        (book(server=False), entry(), True, "the server 'sales' asks for each call"),
        (book("read_only", server=False), entry(reads=True), False, "the provider 'crm' approves what only reads"),
        (book(cluster=True, server=False), entry(), False, "the cluster 'Pets' approves every call"),
    ],
)
def test_the_nearest_policy_with_an_opinion_decides(policies: PolicyBook, tool: Entry, asks: bool, reason: str) -> None:
    assert operator_policy(policies, tool, "sales") == (asks, reason)


auto = st.sampled_from([True, False, "read_only"])
settings = st.sampled_from([None, "ask", "never"])


@given(auto, st.none() | auto, auto, settings, st.booleans())
def test_every_answer_has_a_reason_and_the_tools_own_setting_always_wins(
    provider: AutoApprove, cluster: AutoApprove | None, server: AutoApprove, approval: str | None, reads: bool
) -> None:
    asks, reason = operator_policy(
        book(provider, cluster=cluster, server=server), entry(approval=approval, reads=reads), "sales"
    )
    assert reason
    if approval is not None:
        assert asks == (approval == "ask")
    elif cluster is not None:
        assert asks == (cluster is False or (cluster == "read_only" and not reads))
    elif provider is True and server is True:
        assert not asks


@given(auto, auto, st.booleans())
def test_reading_is_never_asked_for_more_than_changing(
    provider: AutoApprove, server: AutoApprove, outside: bool
) -> None:
    policies, where = book(provider, server=server), None if outside else "sales"
    reading, _ = operator_policy(policies, entry(reads=True), where)
    changing, _ = operator_policy(policies, entry(), where)
    assert changing or not reading


def test_the_deadline_is_the_tools_then_the_providers_then_five_minutes() -> None:
    request = CallRequest("crm:search", {}, CALLER, Origin.HTTP)
    assert approve(book(False), request, entry(approval_timeout=7.0)).timeout == 7.0
    assert approve(book(False), request, entry()).timeout == 60.0
    assert approve(PolicyBook(), request, entry(approval="ask")).timeout == 300.0


def test_a_pre_tool_asks_its_user_besides() -> None:
    tool = Entry(Tool("crm", "pre_delete", ""))
    inside = CallRequest("crm:pre_delete", {}, CALLER, Origin.HTTP, session="sess_1")
    assert set(approve(book(), inside, tool).gates) == {Gate.USER}
    assert set(approve(book(False), inside, tool).gates) == {Gate.USER, Gate.OPERATOR}
    with pytest.raises(CallError) as refused:
        approve(book(), CallRequest("crm:pre_delete", {}, CALLER, Origin.HTTP), tool)
    assert refused.value.code is ErrorCode.DENIED
