"""`make docs`: the HTTP API's OpenAPI document and the manifest's JSON Schema, into docs/reference (not committed)."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path

import httpx2

from toolyard.app import App, Settings
from toolyard.faces.asgi import build
from toolyard.manifest import json_schema

TARGET = Path(__file__).parent.parent / "docs" / "reference"


async def main() -> int:
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        async with App.running(Settings(data_dir=Path(folder), demo=True)) as app:
            transport = httpx2.ASGITransport(build(app))
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420") as client:
                api = (await client.get("/openapi.json")).raise_for_status().json()
    for name, document in {"openapi.json": api, "manifest.schema.json": json_schema()}.items():
        (TARGET / name).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        print(f"docs/reference/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
