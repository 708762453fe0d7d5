"""The HTTP face: `/v1` for programs, `/docs` for people, and what probes and collectors ask for.

`build` is cheap. FastAPI (0.6 s to import) comes with the first request under `/v1` or `/docs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from toolyard.app import App
    from toolyard.faces.http.counters import Counters

__all__ = ["build"]


def build(app: App, counters: Counters | None = None) -> ASGIApp:
    """The ASGI application of this face. `counters` are those that began to count before this face was needed."""
    from toolyard.faces.http.counters import Counters
    from toolyard.faces.http.edge import Edge

    return Edge(app, counters or Counters(app.bus))
