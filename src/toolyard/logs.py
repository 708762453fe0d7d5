"""Where this process logs: to stderr, one line per event, so that stdout stays for results and protocols.

Tracebacks are printed without local variables: those hold arguments, results and keys.
"""

from __future__ import annotations

import logging
import sys


def log_to_stderr(*, verbose: bool = False, quiet: bool = False) -> None:
    """Both structlog and the standard library's loggers: INFO if `verbose`, nothing if `quiet`, else WARNING."""
    level = logging.INFO if verbose else logging.CRITICAL if quiet else logging.WARNING
    logging.basicConfig(level=level, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s", force=True)
    _configure(level)


def log_safely() -> None:
    """For a program that embeds a yard and has not configured structlog, whose default prints local variables."""
    import structlog

    if not structlog.is_configured():
        _configure(logging.NOTSET)


def _configure(level: int) -> None:
    import structlog

    renderer = (
        structlog.dev.ConsoleRenderer(colors=True, exception_formatter=structlog.dev.plain_traceback)
        if sys.stderr.isatty()
        else structlog.processors.LogfmtRenderer(bool_as_flag=False)
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )
