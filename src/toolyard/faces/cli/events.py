"""Server-sent events as the commands read them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

import orjson

from toolyard.core.json import JsonObject


async def events_in(chunks: AsyncIterator[bytes]) -> AsyncIterator[JsonObject]:
    """The `data` of each event, as it comes. Comments and events without a JSON object are passed over."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n\n")
        for block in whole:
            lines = [line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:")]
            value: object = orjson.loads(b"\n".join(lines)) if lines else None
            if isinstance(value, dict) and value:
                yield cast("JsonObject", value)
