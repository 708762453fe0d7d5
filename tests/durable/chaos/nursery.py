"""Forks nodes from a process that has imported everything already, so that a node is back a moment after its death.

Reads one JSON line per command: a `NodeConfig`. Writes `{"born": <slot>, "pid"}`, `{"ready": pid, "node"}` and
`{"died": pid, "status"}`. When its input ends it kills every node and ends.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from tests.durable.chaos import node

REPORTS = 1


def main() -> None:
    node.import_everything()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    selector = selectors.DefaultSelector()
    selector.register(0, selectors.EVENT_READ)
    selector.register(woken, selectors.EVENT_READ)
    children: set[int] = set()
    pending = b""
    while True:
        for key, _ in selector.select():
            if key.fd == woken:
                os.read(woken, 64)
                _reap(children)
                continue
            data = os.read(0, 65536)
            if not data:
                for pid in children:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                return
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                children.add(_bear(json.loads(line)))


def _reap(children: set[int]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        children.discard(pid)
        report({"died": pid, "status": os.waitstatus_to_exitcode(status)})


def _bear(config: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        report({"born": config["slot"], "pid": pid})
        return pid
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _write_to(Path(config["log"]))
        node.run(node.NodeConfig(**config))
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the top of a process: it says why it ended, and ends
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def _write_to(log: Path) -> None:
    """Standard output and error go to the log; what was standard output becomes the way to report."""
    global REPORTS
    REPORTS = os.dup(1)
    os.set_inheritable(REPORTS, False)
    node.REPORT = report
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)


def report(line: dict[str, Any]) -> None:
    os.write(REPORTS, json.dumps(line).encode() + b"\n")


if __name__ == "__main__":
    main()
