"""How a command ends: one line on stderr, and an exit code that a script can tell apart."""

from __future__ import annotations

import sys
from enum import IntEnum
from typing import Any

import typer
from typer.core import TyperGroup

from toolyard.core.errors import (
    BadInput,
    Conflict,
    Forbidden,
    ManifestError,
    NotFound,
    ToolyardError,
    Unauthenticated,
)


class Exit(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    NOT_ALLOWED = 4
    NO_YARD = 5
    CONFLICT = 6
    INTERRUPTED = 130


EXIT_CODES = (
    "Exit codes: 0 done, 1 failed, 2 wrong usage or input, 3 not found, 4 not allowed, "
    "5 no Toolyard answers, 6 conflict, 130 interrupted."
)


class NoYard(ToolyardError):
    """Nothing answers where a running Toolyard was expected."""


_BY_ERROR: tuple[tuple[type[ToolyardError], Exit], ...] = (
    (BadInput, Exit.USAGE),
    (NotFound, Exit.NOT_FOUND),
    (Unauthenticated, Exit.NOT_ALLOWED),
    (Forbidden, Exit.NOT_ALLOWED),
    (NoYard, Exit.NO_YARD),
    (Conflict, Exit.CONFLICT),
)


def exit_code_for(error: ToolyardError) -> Exit:
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), Exit.FAILED)


def complain(text: str) -> None:
    """One error to stderr; only a manifest's mistakes take a line each."""
    print(f"toolyard: {text}", file=sys.stderr)


def told(error: ToolyardError) -> str:
    text = str(error)
    return f"the manifest cannot be used:\n{text}" if isinstance(error, ManifestError) else " ".join(text.split())


class YardGroup(TyperGroup):
    """The top-level command: what we raise on purpose, and a file or folder that cannot be used, ends as a line
    and a code, never as a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ToolyardError as error:
            complain(told(error))
            raise typer.Exit(exit_code_for(error)) from None
        except OSError as error:
            if error.filename is None:
                raise
            complain(f"{error.filename}: {(error.strerror or str(error)).lower()}.")
            raise typer.Exit(Exit.FAILED) from None
        except KeyboardInterrupt:
            raise typer.Exit(Exit.INTERRUPTED) from None
