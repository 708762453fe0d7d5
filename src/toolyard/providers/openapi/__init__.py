"""Tools from OpenAPI documents: `import_document` reads one, `OpenApiProvider` calls its operations.

Names are loaded on first use, because the worker process that reads documents needs none of the HTTP side.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolyard.providers.openapi.api import ImportedApi
    from toolyard.providers.openapi.deferred import DeferredOpenApiProvider
    from toolyard.providers.openapi.loading import DocumentSource
    from toolyard.providers.openapi.provider import OpenApiProvider
    from toolyard.providers.openapi.report import ImportReport
    from toolyard.providers.openapi.running import import_document

__all__ = [
    "DeferredOpenApiProvider",
    "DocumentSource",
    "ImportReport",
    "ImportedApi",
    "OpenApiProvider",
    "import_document",
]

_HOMES = {
    "DeferredOpenApiProvider": "deferred",
    "DocumentSource": "loading",
    "ImportReport": "report",
    "ImportedApi": "api",
    "OpenApiProvider": "provider",
    "import_document": "running",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
