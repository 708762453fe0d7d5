"""From a call that has to wait to the operators' webhook."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from pathlib import Path

import pytest

from tests.notify.receiver import Receiver, receiving
from tests.requirements import requirement
from toolyard.app import App, Settings
from toolyard.catalog import ToolSettings
from toolyard.core.call import CallRequest, Origin
from toolyard.core.clock import SystemClock
from toolyard.core.errors import BadInput
from toolyard.core.principal import LOCAL_OPERATOR, Principal, PrincipalKind, Scope
from toolyard.manifest import AppriseNotification, Manifest, Secret, SettingsConfig, WebhookNotification
from toolyard.notify import verify
from toolyard.providers.python import PythonProvider, PythonTool

CALLER = Principal(PrincipalKind.KEY, "k1", "ci", frozenset({Scope.CALL}))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def wipe(disk: str) -> str:
    """Wipe a disk."""
    return disk


def yard(folder: Path, receiver: Receiver) -> tuple[Settings, Manifest]:
    hook = WebhookNotification(url=receiver.url, secret=Secret("s3cret"))
    settings = SettingsConfig(public_url="https://yard.example.com", notifications=(hook,))
    return Settings(data_dir=folder), Manifest(settings=settings)


async def deliveries(receiver: Receiver, count: int) -> list[dict[str, object]]:
    async with asyncio.timeout(5):
        while len(receiver.deliveries) < count:
            await asyncio.sleep(0.01)
    return [json.loads(body) for _, body in receiver.deliveries]


@requirement("approval.gate")
async def test_operators_are_told_of_a_call_that_waits_with_a_link_to_decide(tmp_path: Path) -> None:
    async with receiving() as receiver, App.running(*yard(tmp_path, receiver)) as app:
        await app.supervisor.add_and_start(PythonProvider("disks", [PythonTool(wipe, "wipe")]))
        await app.set_tool_settings("disks:wipe", ToolSettings(approval="ask"))
        call_id = app.calls.start(CallRequest("disks:wipe", {"disk": "/dev/sda"}, CALLER, Origin.HTTP))
        (told,) = await deliveries(receiver, 1)
        (gate,) = await app.approvals.of_call(call_id)
        headers, body = receiver.deliveries[0]
        verify("s3cret", headers["Toolyard-Signature"], body, SystemClock().now())
        assert told["url"] == f"https://yard.example.com/approvals/{gate.id}"
        assert (told["tool"], told["principal"], told["argument_names"]) == ("disks:wipe", "key:ci", ["disk"])
        assert b"/dev/sda" not in body
        await app.approvals.decide(gate.id, decision="reject", principal=LOCAL_OPERATOR)
        second = app.calls.start(CallRequest("disks:wipe", {"disk": "/dev/sdb"}, CALLER, Origin.HTTP))
        both = await deliveries(receiver, 2)
        assert [one["id"] for one in both] == [gate.id, (await app.approvals.of_call(second))[0].id]


def test_a_yard_that_needs_apprise_and_has_none_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    pager = AppriseNotification(url=Secret("json://pager"))
    with pytest.raises(BadInput, match="pip install"):
        App(Settings(data_dir=tmp_path), Manifest(settings=SettingsConfig(notifications=(pager,))))
