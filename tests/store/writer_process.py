"""A process that writes until it is killed, and says on its standard output what was acknowledged.

`python -m tests.store.writer_process <location> <first> [<last words>]`: eight callers write pairs of rows `<n>-a` and
`<n>-b`, starting at `<first>`, and print `<n>` when the pair is durable. After so many last words it kills itself, at
the very moment of an acknowledgement; without a number it waits for its killer. With `idle` for `<first>`, it only
holds the store.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from itertools import count

from tests.store.rows import put
from toolyard.store import Connection, open_store

CALLERS = 8


async def main(location: str, first: str, last_words: str = "-1") -> None:
    store = open_store(location)
    await store.start()
    os.write(1, b"ready\n")
    if first == "idle":
        await asyncio.Event().wait()
    numbers = count(int(first))
    words_left = int(last_words)

    async def caller() -> None:
        nonlocal words_left
        for n in numbers:

            def write_pair(c: Connection, n: int = n) -> None:
                put(f"{n:08}-a", "x" * 300)(c)
                put(f"{n:08}-b", "x" * 300)(c)

            await store.tx(write_pair)
            os.write(1, b"%d\n" % n)
            words_left -= 1
            if words_left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    await asyncio.gather(*(caller() for _ in range(CALLERS)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
