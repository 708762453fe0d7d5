"""A small pet shop with an HTTP API of its own and its hand-written OpenAPI 3.1 document."""

from pathlib import Path

DOCUMENT = Path(__file__).parent / "openapi.json"
