"""The HTTP face: `/v1` for programs, `/docs` for people, and what probes and collectors ask for.

`build` is cheap. FastAPI (0.6 s to import) comes with the first request under `/v1` or `/docs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.faces.http.edge import Edge

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from toolyard.app import App

__all__ = ["build"]


def build(app: App) -> ASGIApp:
    """The ASGI application of this face."""
    return Edge(app)
