"""A stdio server's process: started behind the guard, spoken to by lines, ended in bounded time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import structlog

from toolyard.core.errors import ProviderError
from toolyard.providers.mcp.wire import MOST_BYTES

_log = structlog.stdlib.get_logger("toolyard.providers.mcp.stderr")
_GUARD = str(Path(__file__).with_name("guard.py"))
_LONGEST_LOG_LINE = 4096
_POLITE_SECONDS = 1.0
"""How long a server may take to end by itself once its stdin is closed."""
_GUARD_SECONDS = 3.0
_INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "SSL_CERT_FILE")


class Child:
    """Made by `start`. `on_line` gets each line of stdout, `on_end` one sentence when the server is gone."""

    def __init__(self, provider_id: str, process: asyncio.subprocess.Process, lifeline: int) -> None:
        self._id = provider_id
        self._process = process
        self._lifeline: int | None = lifeline
        self._tail = ""
        self._reading: list[asyncio.Task[None]] = []

    @staticmethod
    async def start(
        provider_id: str,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | None,
        on_line: Callable[[bytes], None],
        on_end: Callable[[str], None],
    ) -> Child:
        """
        Raises:
            ProviderError: the folder does not exist, or no process can be made.
        """
        watched, lifeline = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-I", "-S", _GUARD, str(watched), *command),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**_environment(), **env},
                cwd=cwd,
                pass_fds=(watched,),
                start_new_session=True,
                limit=MOST_BYTES,
            )
        except (OSError, ValueError) as error:
            os.close(lifeline)
            raise ProviderError(f"{command[0]} cannot be started: {error}") from error
        finally:
            os.close(watched)
        child = Child(provider_id, process, lifeline)
        child._reading = [
            asyncio.create_task(child._read_lines(on_line, on_end), name=f"stdout of {provider_id}"),
            asyncio.create_task(child._log_stderr(), name=f"stderr of {provider_id}"),
        ]
        return child

    @property
    def pid(self) -> int:
        """The guard's; its process group is the session that holds everything."""
        return self._process.pid

    async def send(self, line: bytes) -> None:
        """
        Raises:
            OSError: the server no longer reads.
        """
        writer = self._process.stdin
        if writer is None or writer.is_closing():
            raise BrokenPipeError("the server's stdin is closed")
        writer.write(line + b"\n")
        await writer.drain()

    async def close(self) -> None:
        """Closes stdin, waits a moment, then has the guard end everything. Takes at most about 5 seconds."""
        for task in self._reading[:1]:
            task.cancel()
        if self._process.stdin is not None:
            self._process.stdin.close()
        if not await self._ended_within(_POLITE_SECONDS):
            self._cut_lifeline()
            if not await self._ended_within(_GUARD_SECONDS):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                await self._ended_within(_GUARD_SECONDS)
        self._cut_lifeline()
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)

    async def _ended_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._process.wait()
        except TimeoutError:
            return False
        return True

    def _cut_lifeline(self) -> None:
        lifeline, self._lifeline = self._lifeline, None
        if lifeline is not None:
            os.close(lifeline)

    async def _read_lines(self, on_line: Callable[[bytes], None], on_end: Callable[[str], None]) -> None:
        reader = self._process.stdout
        assert reader is not None  # noqa: S101  it was asked for as a pipe
        reason = None
        try:
            while line := await reader.readline():
                on_line(line)
        except ValueError:
            reason = f"It wrote a line longer than {MOST_BYTES // 1024 // 1024} MiB."
            self._cut_lifeline()
        if reason is None:
            reason = await self._last_words()
        on_end(reason)

    async def _last_words(self) -> str:
        """How it ended, with the last line of its stderr, which mostly says why."""
        if not await self._ended_within(_POLITE_SECONDS):
            self._cut_lifeline()
            return "It closed its stdout."
        if len(self._reading) > 1:
            await asyncio.wait(self._reading[1:], timeout=0.5)
        status = self._process.returncode
        ended = (
            f"It ended with status {status}."
            if status is None or status < 128
            else f"It was ended by {_signal(status)}."
        )
        return f"{ended} Its last words: {self._tail}" if self._tail else ended

    async def _log_stderr(self) -> None:
        reader = self._process.stderr
        assert reader is not None  # noqa: S101  it was asked for as a pipe
        rest = b""
        while chunk := await reader.read(64 * 1024):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._log(line)
            if len(rest) > _LONGEST_LOG_LINE:
                self._log(rest)
                rest = b""
        self._log(rest)

    def _log(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip()
        if text:
            self._tail = text[:300]
            _log.info("stderr", provider=self._id, line=text[:_LONGEST_LOG_LINE])


def _environment() -> dict[str, str]:
    """What a server may see of ours: enough to run, and no secrets that are meant for somebody else."""
    return {name: os.environ[name] for name in _INHERITED if name in os.environ}


def _signal(status: int) -> str:
    try:
        return signal.Signals(status - 128).name
    except ValueError:
        return f"status {status}"
