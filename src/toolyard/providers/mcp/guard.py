"""Stands between us and a stdio server, so that nothing of it outlives us. Run as a script, on the standard library.

Usage: `python -I -S guard.py <lifeline-fd> <command> [arguments]`. The server inherits stdin, stdout and stderr and
runs in a process group of its own. The guard ends the whole group, and every descendant that left it (Linux), when
- the lifeline closes, because we closed it or because we died, be it by kill -9; or
- it is told to by SIGTERM; or
- the server itself ended, leaving processes behind.
It exits as the server did: with its status, or 128 + the signal's number.
"""

import ctypes
import os
import select
import signal
import sys
import time

GRACE_SECONDS = 1.0
_SET_PDEATHSIG = 1
_SET_CHILD_SUBREAPER = 36
NOT_FOUND = 127
NOT_EXECUTABLE = 126


def prctl(option: int, value: int) -> None:
    """Linux only; elsewhere the process group has to do."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def spawn(command: list[str], lifeline: int) -> int:
    child = os.fork()
    if child:
        return child
    try:
        os.setpgid(0, 0)
        os.close(lifeline)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        prctl(_SET_PDEATHSIG, signal.SIGKILL)
        os.execvp(command[0], command)  # noqa: S606  there is to be no shell
    except FileNotFoundError:
        os.write(2, f"{command[0]}: command not found\n".encode())
        os._exit(NOT_FOUND)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(NOT_EXECUTABLE)


def reap(child: int, status: int | None) -> int | None:
    """Collects everything that ended; the server's own wait status once it is known."""
    while True:
        try:
            pid, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return 0 if status is None else status
        if pid == 0:
            return status
        if pid == child:
            status = ended


def descendants() -> list[int]:
    """Our children now, orphans that were handed to us included (Linux)."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as children:
            return [int(pid) for pid in children.read().split()]
    except OSError:
        return []


def end(child: int, status: int | None) -> int | None:
    """SIGTERM to the group, a grace, then SIGKILL to all that is left, until nothing is left."""
    signal_group(child, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    while status is None and time.monotonic() < deadline:
        status = reap(child, status)
        time.sleep(0.01)
    deadline = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < deadline:
        signal_group(child, signal.SIGKILL)
        for pid in descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        status = reap(child, status)
        if not descendants():
            break
        time.sleep(0.005)
    return status


def signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return


def main(lifeline: int, command: list[str]) -> int:
    prctl(_SET_CHILD_SUBREAPER, 1)
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _frame: asked.append(got))
    signal.signal(signal.SIGCHLD, lambda _got, _frame: None)
    child = spawn(command, lifeline)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for inherited in (0, 1):
        os.dup2(nowhere, inherited)  # only the server may hold these ends, or nobody would see them close
    status: int | None = None
    while status is None and not asked:
        ready, _, _ = select.select([lifeline, told], [], [])
        if told in ready:
            os.read(told, 512)
            status = reap(child, status)
        if lifeline in ready:
            break
    status = end(child, status)
    if status is None:
        return 1
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


if __name__ == "__main__":
    os._exit(main(int(sys.argv[1]), sys.argv[2:]))
