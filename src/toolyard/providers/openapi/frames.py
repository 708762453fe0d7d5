"""What the importing process and its parent say to each other: length-prefixed MessagePack on stdin and stdout."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

PREFIX = 4


class Job(msgspec.Struct, frozen=True, tag=True):
    """To the worker, once. `location` is a path when there are no `data`, else the URL they came from, or `""`."""

    location: str
    data: bytes | None


class Fetch(msgspec.Struct, frozen=True, tag=True):
    """From the worker: another file of the document is needed."""

    url: str


class Fetched(msgspec.Struct, frozen=True, tag=True):
    """To the worker: the file, or why there is none."""

    data: bytes
    error: str = ""


class Progressed(msgspec.Struct, frozen=True, tag=True):
    done: int
    total: int


class Done(msgspec.Struct, frozen=True, tag=True):
    """From the worker, last: the encoded `Imported`."""

    imported: bytes


class Refused(msgspec.Struct, frozen=True, tag=True):
    """From the worker, last: a `DocumentError`."""

    message: str
    suggestion: str | None


ToWorker: TypeAlias = Job | Fetched
FromWorker: TypeAlias = Fetch | Progressed | Done | Refused


def frame(message: ToWorker | FromWorker) -> bytes:
    data = msgspec.msgpack.encode(message)
    return len(data).to_bytes(PREFIX, "big") + data
