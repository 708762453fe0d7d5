from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from toolyard.egress import Egress


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def egress() -> AsyncIterator[Egress]:
    client = Egress()
    yield client
    await client.close()
