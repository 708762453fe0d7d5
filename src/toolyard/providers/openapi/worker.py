"""`python -m toolyard.providers.openapi.worker`: reads one document and ends.

A process of its own, because two seconds of Python in ours would hold up every call and the node's lease, and
because a hostile document may then waste only the memory and time it is given. It has no network: other files of a
URL's document are fetched by the parent.
"""

from __future__ import annotations

import gc
import os
import resource
import sys
from contextlib import suppress
from typing import BinaryIO

import msgspec

from toolyard.core.errors import DocumentError
from toolyard.providers.openapi.frames import (
    PREFIX,
    Done,
    Fetch,
    Fetched,
    FromWorker,
    Job,
    Progressed,
    Refused,
    ToWorker,
    frame,
)
from toolyard.providers.openapi.importer import import_data, read_source

MOST_MEMORY = 3 * 1024**3


class _Parent:
    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._decoder: msgspec.msgpack.Decoder[ToWorker] = msgspec.msgpack.Decoder(ToWorker)

    def hear(self) -> ToWorker:
        length = int.from_bytes(self._incoming.read(PREFIX), "big")
        return self._decoder.decode(self._incoming.read(length))

    def tell(self, message: FromWorker) -> None:
        self._outgoing.write(frame(message))
        self._outgoing.flush()

    def fetch(self, url: str) -> bytes:
        self.tell(Fetch(url))
        answer = self.hear()
        if not isinstance(answer, Fetched) or answer.error:
            raise DocumentError(answer.error if isinstance(answer, Fetched) else f"{url} was not fetched.")
        return answer.data


def main() -> None:
    with suppress(ValueError, OSError):  # not every system can limit it
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    os.nice(5)
    gc.disable()  # the process ends with its one document: collecting would only cost time
    parent = _Parent(sys.stdin.buffer, sys.stdout.buffer)
    job = parent.hear()
    if not isinstance(job, Job):
        raise TypeError("the first message is a job")
    try:
        data, files = read_source(job.location, job.data, parent.fetch)
        imported = import_data(
            data,
            files,
            document_url=job.location if job.data is not None else "",
            progress=lambda done, total: parent.tell(Progressed(done, total)),
        )
        parent.tell(Done(msgspec.msgpack.encode(imported)))
    except DocumentError as error:
        parent.tell(Refused(error.message, error.suggestion))
    except MemoryError:
        parent.tell(Refused("The document needs more memory than an import may use.", "Import a smaller part of it."))


if __name__ == "__main__":
    main()
