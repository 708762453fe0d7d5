"""The ways a notice goes out. Each sends once; trying again is the notifier's business."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast
from urllib.parse import urlsplit

from toolyard.core.clock import Clock
from toolyard.core.errors import AddressRefused, BadInput, EgressError
from toolyard.core.json import dumps
from toolyard.egress import Egress
from toolyard.manifest import NotificationConfig, WebhookNotification
from toolyard.notify.notice import Notice
from toolyard.notify.signing import SIGNATURE_HEADER, sign

DELIVERY_HEADER = "Toolyard-Delivery"
"""The notice's id: a receiver that sees it twice got a retry."""
_TIME_LIMIT = 10.0
_APPRISE_TIME_LIMIT = 60.0
_MOST_BYTES = 64 * 1024
_TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


class NotDelivered(Exception):
    """`final`: trying again would end the same way. The message names the host at most, never the whole address."""

    def __init__(self, message: str, *, final: bool) -> None:
        super().__init__(message)
        self.final = final


class Channel(Protocol):
    @property
    def name(self) -> str:
        """For the log: kind and host."""
        ...

    async def send(self, notice: Notice) -> None:
        """
        Raises:
            NotDelivered
        """
        ...


@dataclass(frozen=True, slots=True)
class WebhookChannel:
    """POSTs JSON, signed over the raw body and the time (`signing`)."""

    url: str
    secret: str
    include_arguments: bool
    egress: Egress
    clock: Clock

    @property
    def name(self) -> str:
        return f"webhook at {urlsplit(self.url).hostname}"

    async def send(self, notice: Notice) -> None:
        body = dumps(notice.to_wire(include_arguments=self.include_arguments))
        headers = {
            "Content-Type": "application/json",
            SIGNATURE_HEADER: sign(self.secret, body, self.clock.now()),
            DELIVERY_HEADER: notice.id,
        }
        try:
            answer = await self.egress.request(
                "POST", self.url, headers=headers, body=body, time_limit=_TIME_LIMIT, max_bytes=_MOST_BYTES
            )
        except AddressRefused as error:
            raise NotDelivered(error.message, final=True) from error
        except EgressError as error:
            raise NotDelivered(error.message, final=False) from error
        if not 200 <= answer.status < 300:
            raise NotDelivered(f"it answered {answer.status}", final=answer.status not in _TRY_AGAIN)


class _Apprise(Protocol):
    def add(self, servers: str, /) -> bool: ...

    async def async_notify(self, body: str, title: str) -> object: ...


@dataclass(frozen=True, slots=True)
class AppriseChannel:
    """Through the Apprise library, which opens its own connections: only addresses from the manifest reach it."""

    url: str
    include_arguments: bool

    @property
    def name(self) -> str:
        return f"apprise ({urlsplit(self.url).scheme})"

    async def send(self, notice: Notice) -> None:
        module = await asyncio.to_thread(importlib.import_module, "apprise")
        target = cast("_Apprise", module.Apprise())
        if not target.add(self.url):
            raise NotDelivered("Apprise does not know such an address", final=True)
        text = notice.text(include_arguments=self.include_arguments)
        try:
            async with asyncio.timeout(_APPRISE_TIME_LIMIT):
                delivered = await target.async_notify(text, notice.title)
        except TimeoutError as error:
            raise NotDelivered(f"no end after {_APPRISE_TIME_LIMIT:.0f} s", final=False) from error
        if not delivered:
            raise NotDelivered("Apprise could not deliver it; its own log says why", final=False)


def channels_of(configs: Sequence[NotificationConfig], egress: Egress, clock: Clock) -> tuple[Channel, ...]:
    """
    Raises:
        BadInput: an entry needs the optional package `apprise`, which is not installed.
    """
    return tuple(_channel(config, f"settings.notifications[{at}]", egress, clock) for at, config in enumerate(configs))


def _channel(config: NotificationConfig, place: str, egress: Egress, clock: Clock) -> Channel:
    if isinstance(config, WebhookNotification):
        return WebhookChannel(config.url, config.secret.reveal(), config.include_arguments, egress, clock)
    if importlib.util.find_spec("apprise") is None:
        raise BadInput(
            f"{place} is of the kind apprise, and the package 'apprise' is not installed.",
            where=place,
            suggestion="Install it with: pip install 'toolyard[apprise]'",
        )
    return AppriseChannel(config.url.reveal(), config.include_arguments)
