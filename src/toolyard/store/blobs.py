"""Bytes too large for a row: images, long results, imported documents. In a folder, or wherever obstore reaches."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import contextmanager, suppress
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
        _check(name)
        with self._told("written to"):
            await self._objects.put_async(name, data)

    async def get(self, name: str) -> bytes:
        """
        Raises:
            NotFound: there is no such blob.
            StoreUnavailable: it could not be read.
        """
        _check(name)
        try:
            with self._told("read from"):
                found = await self._objects.get_async(name)
                return bytes(await found.bytes_async())
        except FileNotFoundError as error:
            raise NotFound(f"There is no blob {name!r}.") from error

    async def delete(self, names: list[str]) -> None:
        """Names that are not there are passed over.

        Raises:
            StoreUnavailable: one could not be deleted.
        """
        for name in names:
            _check(name)
            with suppress(FileNotFoundError), self._told("deleted from"):
                await self._objects.delete_async(name)

    async def names(self, prefix: str) -> list[str]:
        """Every name below `prefix`.

        Raises:
            StoreUnavailable
        """
        found: list[str] = []
        with self._told("listed in"):
            async for batch in cast("AsyncIterator[Sequence[ObjectMeta]]", self._objects.list(prefix)):  # pyright: ignore[reportUnknownMemberType]
                found += [meta["path"] for meta in batch]
        return found

    @contextmanager
    def _told(self, doing: str) -> Generator[None]:
        """
        Raises:
            StoreUnavailable: what the object store or the file system says, but for a blob that is not there.
        """
        from obstore.exceptions import BaseError

        try:
            yield
        except FileNotFoundError:
            raise
        except (BaseError, OSError) as error:
            why = str(error).partition("\n")[0]  # what follows is the object store's own debugging text
            raise StoreUnavailable(
                f"A blob could not be {doing} {self.location}: {why}",
                suggestion="Check free space and permissions there.",
            ) from error


def _check(name: str) -> None:
    if not _NAME.fullmatch(name) or any(part in ("", ".", "..") for part in name.split("/")):
        raise NotFound(f"{name!r} is no blob's name.")
