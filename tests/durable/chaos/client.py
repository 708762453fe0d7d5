"""A client that asks any node, and asks another one when the connection breaks."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

ONE_ANSWER = 4.0
"""Seconds for one attempt; a paused node never answers."""
PATIENCE = 45.0
"""Seconds over all attempts."""
_BROKEN = (aiohttp.ClientError, OSError, TimeoutError)
_TRY_AGAIN = (429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any

    @property
    def ok(self) -> bool:
        return self.status < 300


class OutOfPatienceError(Exception):
    """No node gave an answer."""


class Client:
    """`nodes` are base URLs, each attempt takes one by the seeded dice."""

    def __init__(self, nodes: list[str], dice: random.Random) -> None:
        self.nodes = nodes
        self._dice = dice
        self._session = aiohttp.ClientSession()

    async def close(self) -> None:
        await self._session.close()

    def any_node(self) -> str:
        return self._dice.choice(self.nodes)

    async def ask(
        self, method: str, path: str, *, key: str, body: object = None, headers: Mapping[str, str] | None = None,
        patience: float = PATIENCE, one_answer: float = ONE_ANSWER,
    ) -> Answer:  # fmt: skip
        """
        Raises:
            OutOfPatienceError: what happened is not known.
        """
        until = time.monotonic() + patience
        sent = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", **(headers or {})}
        data = None if body is None else orjson.dumps(body)
        limit = aiohttp.ClientTimeout(total=one_answer)
        while True:
            try:
                url = self.any_node() + path
                async with self._session.request(method, url, data=data, headers=sent, timeout=limit) as response:
                    answer = _answer(response.status, await response.read())
                if answer.status not in _TRY_AGAIN:
                    return answer
                said = f"{answer.status} {answer.body}"
            except _BROKEN as error:
                said = repr(error)
            if time.monotonic() > until:
                raise OutOfPatienceError(f"{method} {path}: {said}")
            await asyncio.sleep(self._dice.uniform(0.02, 0.15))

    def stream(self, url: str, *, key: str, headers: Mapping[str, str]) -> Any:
        """A GET whose answer is read as it comes; silence for longer than a keep-alive would be an error."""
        sent = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream", **headers}
        return self._session.get(url, headers=sent, timeout=aiohttp.ClientTimeout(total=None, sock_read=3.0))


def _answer(status: int, raw: bytes) -> Answer:
    try:
        return Answer(status, orjson.loads(raw) if raw else None)
    except orjson.JSONDecodeError:
        return Answer(status, raw.decode(errors="replace"))
