"""Server-sent events out of chunks of bytes, bounded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    data: str
    id: str | None = None
    retry: int | None = None
    """Milliseconds to wait before reconnecting."""


class EventTooLong(Exception):
    """One event is longer than allowed."""


class Events:
    """Feed it chunks, take whole events. Lines may end in LF, CRLF or CR; comments are dropped."""

    def __init__(self, *, longest: int) -> None:
        self._longest = longest
        self._rest = b""
        self._after_cr = False
        self._data: list[str] = []
        self._size = 0
        self._id: str | None = None
        self._retry: int | None = None

    def feed(self, chunk: bytes) -> list[Event]:
        """
        Raises:
            EventTooLong: an event, finished or not, is longer than allowed.
        """
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_cr = chunk.endswith(b"\r")
        text = self._rest + chunk
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, self._rest = text.split(b"\n")
        found: list[Event] = []
        for line in lines:
            if line:
                self._take(line)
            elif (event := self._finish()) is not None:
                found.append(event)
        if self._size + len(self._rest) > self._longest:
            raise EventTooLong
        return found

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if not name:
            return
        text = value.removeprefix(b" ").decode(errors="replace")
        if name == b"data":
            self._size += len(line)
            if self._size > self._longest:
                raise EventTooLong
            self._data.append(text)
        elif name == b"id" and "\0" not in text:
            self._id = text
        elif name == b"retry" and text.isascii() and text.isdigit() and len(text) < 10:
            self._retry = int(text)

    def _finish(self) -> Event | None:
        if not self._data and self._id is None and self._retry is None:
            return None
        event = Event("\n".join(self._data), self._id, self._retry)
        self._data, self._size, self._id, self._retry = [], 0, None, None
        return event
