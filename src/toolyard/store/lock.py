"""One process per SQLite file, guarded by a lock that the kernel drops when its holder dies."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

from toolyard.core.errors import StoreInUse

_held: set[Path] = set()
_guard = threading.Lock()


class ProcessLock:
    """
    A POSIX record lock on `<database>.lock`: it dies with the process (also by kill -9) and is not inherited by forked
    children, as flock would be. Such a lock does not exclude its own process, hence the set of held paths.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        real = database.resolve()  # a symbolic link to it is the same database
        self._path = real.with_name(f"{real.name}.lock")
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """
        Raises:
            StoreInUse: another process, or another store of this one, has the file open.
        """
        with _guard:
            if self._path in _held:
                raise self._refusal(os.getpid())
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
                os.close(descriptor)
                raise self._refusal(int(holder) if holder.isdigit() else None) from error
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            self._descriptor = descriptor
            _held.add(self._path)

    def release(self) -> None:
        with _guard:
            if self._descriptor is not None:
                _held.discard(self._path)
                os.close(self._descriptor)
                self._descriptor = None

    def _refusal(self, holder: int | None) -> StoreInUse:
        by = f" (process {holder})" if holder else ""
        return StoreInUse(
            f"The database {self._database} is in use by another Toolyard{by}.",
            suggestion="Stop that one first, or give --database postgresql://... to run several nodes on one database.",
        )
