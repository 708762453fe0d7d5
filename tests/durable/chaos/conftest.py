"""One nursery for all storms: importing everything once is most of what starting a node costs."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.durable.chaos.cluster import Nursery, nursery


@pytest.fixture(scope="package")
async def nodes() -> AsyncIterator[Nursery]:
    async with nursery() as running:
        yield running
