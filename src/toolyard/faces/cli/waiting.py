"""A sign of life on stderr while something takes long; silent where nobody looks."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator


@contextlib.contextmanager
def waiting(what: str) -> Generator[Callable[[float, float | None, str | None], None]]:
    """Shows `what` and the time it takes; the function given moves it on: (progress, total, message)."""
    if not sys.stderr.isatty():
        yield _ignore
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def move(progress: float, total: float | None, message: str | None) -> None:
            text = f"{what}: {message}" if message else what
            bar.update(task, completed=progress, total=total, description=" ".join(text.split()))

        yield move


def _ignore(progress: float, total: float | None, message: str | None) -> None:
    return None
