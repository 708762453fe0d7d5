"""Bytes too large for a row: images, long results, imported documents. In a folder, or wherever obstore reaches."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, cast

from toolyard.core.errors import NotFound, StoreUnavailable

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,300}")


class Blobs:
    """`location` is a folder, or a URL such as `s3://bucket/prefix` (credentials from the environment).

    Names look like `calls/2026-11-20/call_abc-0.png`; the folder of a day lets retention delete by day.
    """

    def __init__(self, location: str) -> None:
        self.location = location

    @cached_property
    def _objects(self) -> ObjectStore:
        from obstore.store import LocalStore, from_url

        if "://" in self.location:
            return from_url(self.location)
        return LocalStore(prefix=self.location, mkdir=True)

    async def put(self, name: str, data: bytes) -> None:
        """
        Raises:
            StoreUnavailable: it could not be written (a full disk, no permission).
        """
        from obstore.exceptions import BaseError

        _check(name)
        try:
            await self._objects.put_async(name, data)
        except (BaseError, OSError) as error:
            why = str(error).partition("\n")[0]  # what follows is the object store's own debugging text
            raise StoreUnavailable(
                f"A blob could not be written to {self.location}: {why}",
                suggestion="Check free space and permissions there.",
            ) from error

    async def get(self, name: str) -> bytes:
        """
        Raises:
            NotFound: there is no such blob.
        """
        _check(name)
        try:
            found = await self._objects.get_async(name)
            return bytes(await found.bytes_async())
        except FileNotFoundError as error:
            raise NotFound(f"There is no blob {name!r}.") from error

    async def delete(self, names: list[str]) -> None:
        """Names that are not there are passed over."""
        for name in names:
            _check(name)
            try:
                await self._objects.delete_async(name)
            except FileNotFoundError:
                continue

    async def names(self, prefix: str) -> list[str]:
        """Every name below `prefix`."""
        found: list[str] = []
        async for batch in cast("AsyncIterator[Sequence[ObjectMeta]]", self._objects.list(prefix)):  # pyright: ignore[reportUnknownMemberType]
            found += [meta["path"] for meta in batch]
        return found


def _check(name: str) -> None:
    if not _NAME.fullmatch(name) or any(part in ("", ".", "..") for part in name.split("/")):
        raise NotFound(f"{name!r} is no blob's name.")
