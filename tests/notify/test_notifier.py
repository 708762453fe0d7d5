"""Notices reach a server on this machine: signed, tried again with patience, and never in the way."""

from __future__ import annotations

import asyncio
import importlib.machinery
import importlib.util
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from tests.notify.receiver import receiving
from toolyard.core.clock import SystemClock
from toolyard.core.errors import BadInput
from toolyard.egress import Egress
from toolyard.manifest import AppriseNotification, Secret, WebhookNotification
from toolyard.notify import Channel, NotDelivered, Notice, Notifier, channels_of, verify

CLOCK = SystemClock()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def egress() -> AsyncIterator[Egress]:
    egress = Egress()
    yield egress
    await egress.close()


def notice(**changed: Any) -> Notice:
    now = CLOCK.now()
    made = Notice(
        id="apr_1",
        tool="petstore:deletePet",
        who="key:ci",
        server="sales",
        session=None,
        why="the tool is set to ask",
        created=now,
        deadline=now + 300,
        url="https://yard.example.com/approvals/apr_1",
        arguments={"petId": 17, "token": "hidden"},
    )
    return replace(made, **changed)


class Naps(SystemClock):
    """Instead of sleeping: what was slept, and a clock that went on meanwhile."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    def now(self) -> float:
        return super().now() + sum(self.taken)

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


def hook(url: str, egress: Egress, *, include_arguments: bool = False) -> tuple[Channel, ...]:
    config = WebhookNotification(url=url, secret=Secret("s3cret"), include_arguments=include_arguments)
    return channels_of([config], egress, CLOCK)


async def test_a_delivery_is_signed_over_its_raw_body_and_names_tool_caller_and_link(egress: Egress) -> None:
    async with receiving() as receiver:
        notifier = Notifier(hook(receiver.url, egress))
        told = notice()
        notifier.tell(told)
        await notifier.delivered()
    (headers, body), *more = receiver.deliveries
    assert not more
    verify("s3cret", headers["Toolyard-Signature"], body, CLOCK.now())
    assert headers["Toolyard-Delivery"] == "apr_1"
    assert headers["Content-Type"] == "application/json"
    wire = json.loads(body)
    assert (wire.pop("created") < wire.pop("deadline")) is True
    assert wire == {
        "type": "approval.requested",
        "id": "apr_1",
        "tool": "petstore:deletePet",
        "principal": "key:ci",
        "server": "sales",
        "session": None,
        "why": "the tool is set to ask",
        "url": "https://yard.example.com/approvals/apr_1",
        "argument_names": ["petId", "token"],
    }


async def test_values_of_arguments_leave_only_where_the_manifest_says_so(egress: Egress) -> None:
    async with receiving() as receiver:
        notifier = Notifier([*hook(receiver.url, egress), *hook(receiver.url, egress, include_arguments=True)])
        notifier.tell(notice())
        await notifier.delivered()
    bodies = sorted((json.loads(body) for _, body in receiver.deliveries), key=len)
    assert "arguments" not in bodies[0]
    assert "hidden" not in json.dumps(bodies[0])
    assert bodies[1]["arguments"] == {"petId": 17, "token": "hidden"}


async def test_a_receiver_that_stumbles_is_tried_again_later_and_later_with_the_same_delivery(egress: Egress) -> None:
    naps = Naps()
    async with receiving(503, 500, 429) as receiver:
        notifier = Notifier(hook(receiver.url, egress), sleep=naps)
        notifier.tell(notice())
        await notifier.delivered()
    assert [headers["Toolyard-Delivery"] for headers, _ in receiver.deliveries] == ["apr_1"] * 4
    assert len({body for _, body in receiver.deliveries}) == 1
    assert len(naps.taken) == 3
    assert all(0.8 * pause <= taken <= 1.2 * pause for taken, pause in zip(naps.taken, (1, 2, 4), strict=True))


@pytest.mark.parametrize("status", [400, 401, 404, 410, 302])
async def test_a_receiver_that_refuses_is_not_asked_again(egress: Egress, status: int) -> None:
    naps = Naps()
    async with receiving(status) as receiver:
        notifier = Notifier(hook(receiver.url, egress), sleep=naps)
        notifier.tell(notice())
        await notifier.delivered()
    assert (len(receiver.deliveries), naps.taken) == (1, [])


async def test_nobody_is_told_any_more_once_the_deadline_would_have_passed(egress: Egress) -> None:
    naps = Naps()
    async with receiving(503, 503, 503) as receiver:
        notifier = Notifier(hook(receiver.url, egress), clock=naps, sleep=naps)
        notifier.tell(notice(deadline=CLOCK.now() + 2))
        await notifier.delivered()
    assert (len(receiver.deliveries), len(naps.taken)) == (2, 1)


async def test_an_address_where_nobody_listens_is_given_up_after_eight_attempts(
    egress: Egress, capsys: pytest.CaptureFixture[str]
) -> None:
    naps = Naps()
    async with receiving() as receiver:
        url = receiver.url
    notifier = Notifier(hook(f"{url}?token=private", egress), sleep=naps)
    notifier.tell(notice(deadline=CLOCK.now() + 3600))
    await notifier.delivered()
    assert len(naps.taken) == 7
    assert max(naps.taken) <= 72
    printed = capsys.readouterr()
    assert "private" not in printed.out + printed.err


class Stuck:
    """A channel whose other end never answers."""

    name = "stuck"

    def __init__(self) -> None:
        self.begun = 0

    async def send(self, notice: Notice) -> None:
        self.begun += 1
        await asyncio.Event().wait()


async def test_telling_never_waits_and_a_flood_is_dropped(egress: Egress) -> None:
    stuck = Stuck()
    notifier = Notifier([stuck])
    for number in range(1200):
        notifier.tell(notice(id=f"apr_{number}"))
    async with asyncio.timeout(5):
        while stuck.begun < 8:
            await asyncio.sleep(0)
        await notifier.close()
    assert stuck.begun == 8


class FakeApprise:
    """What of Apprise's interface is used."""

    sent: list[tuple[str, str, str]] = []  # noqa: RUF012
    answers: list[bool] = []  # noqa: RUF012

    def __init__(self) -> None:
        self.url = ""

    def add(self, servers: str) -> bool:
        self.url = servers
        return servers.startswith("json://")

    async def async_notify(self, body: str, title: str) -> bool:
        FakeApprise.sent.append((self.url, title, body))
        return FakeApprise.answers.pop(0) if FakeApprise.answers else True


@pytest.fixture
def apprise(monkeypatch: pytest.MonkeyPatch) -> type[FakeApprise]:
    module = ModuleType("apprise")
    module.__spec__ = importlib.machinery.ModuleSpec("apprise", None)
    module.Apprise = FakeApprise  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "apprise", module)
    FakeApprise.sent, FakeApprise.answers = [], []
    return FakeApprise


def by_apprise(url: str, egress: Egress, *, include_arguments: bool = False) -> tuple[Channel, ...]:
    return channels_of([AppriseNotification(url=Secret(url), include_arguments=include_arguments)], egress, CLOCK)


async def test_apprise_gets_a_message_for_people_without_values(egress: Egress, apprise: type[FakeApprise]) -> None:
    apprise.answers = [False]
    naps = Naps()
    notifier = Notifier(by_apprise("json://pager", egress), sleep=naps)
    notifier.tell(notice())
    await notifier.delivered()
    assert len(naps.taken) == 1
    assert len(apprise.sent) == 2
    url, title, body = apprise.sent[1]
    assert (url, title) == ("json://pager", "Decision needed: petstore:deletePet")
    assert body.startswith(
        "key:ci asks to call petstore:deletePet through sales.\nAsked because: the tool is set to ask"
    )
    assert "https://yard.example.com/approvals/apr_1" in body
    assert "hidden" not in body


async def test_apprise_gets_the_arguments_on_request_and_not_without_end(
    egress: Egress, apprise: type[FakeApprise]
) -> None:
    notifier = Notifier(by_apprise("json://pager", egress, include_arguments=True))
    notifier.tell(notice(arguments={"text": "x" * 9000}))
    await notifier.delivered()
    body = apprise.sent[0][2]
    assert '{"text":"xxx' in body
    assert len(body) < 2500


async def test_an_address_that_apprise_does_not_know_is_given_up_at_once(
    egress: Egress, apprise: type[FakeApprise]
) -> None:
    (channel,) = by_apprise("nonsense://x", egress)
    with pytest.raises(NotDelivered) as caught:
        await channel.send(notice())
    assert caught.value.final


def test_without_apprise_the_start_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BadInput) as caught:
        by_apprise("json://pager", Egress())
    assert str(caught.value) == (
        "settings.notifications[0] is of the kind apprise, and the package 'apprise' is not installed. "
        "Install it with: pip install 'toolyard[apprise]'"
    )
