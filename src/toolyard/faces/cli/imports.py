"""`toolyard import`: an API document becomes tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolyard.core.errors import BadInput
from toolyard.core.json import JsonObject, JsonValue
from toolyard.faces.cli.options import DEFAULT_URL, AsJson, Url
from toolyard.faces.cli.output import note, objects, print_json, print_table
from toolyard.faces.cli.waiting import waiting
from toolyard.faces.cli.yard import Yard, with_yard

_IMPORT_SECONDS = 300.0


def import_document(
    source: Annotated[str, typer.Argument(help="A URL that the yard can reach, or a local file.", metavar="URL|FILE")],
    *,
    cluster: Annotated[str | None, typer.Option(help="The cluster's name; the document's title by default.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Where calls go, instead of the document's servers.")] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Import an OpenAPI or Swagger document; every operation becomes a tool."""
    body: dict[str, JsonValue] = {"url": source} if "://" in source else {"document": _text_of(Path(source))}
    if cluster is not None:
        body["cluster"] = cluster
    if base_url is not None:
        body["base_url"] = base_url

    async def send(yard: Yard) -> JsonObject:
        with waiting(f"Importing {source}"):
            return await yard.post("/v1/agents/default/tools/import-openapi", body, time_limit=_IMPORT_SECONDS)

    answer = with_yard(url, send)
    if as_json:
        print_json(answer)
    else:
        _print(answer)


def _print(answer: JsonObject) -> None:
    tools = objects(answer.get("tools"))
    rows = [(tool.get("id"), _operation(tool), tool.get("summary") or tool.get("description")) for tool in tools]
    print_table(("tool", "operation", "summary"), rows, empty="The document has no operations.")
    found = answer.get("report")
    report = found if isinstance(found, dict) else {}
    repaired, dropped = objects(report.get("repaired")), objects(report.get("dropped"))
    note(f"{len(tools)} tools in cluster {answer.get('cluster')!r}; {len(repaired)} repaired, {len(dropped)} dropped.")
    for word, entries in (("repaired", repaired), ("dropped", dropped)):
        for entry in entries:
            note(f"  {word} {entry.get('pointer')}: {entry.get('what')}")


def _operation(tool: JsonObject) -> str:
    origin = tool.get("origin")
    place = origin if isinstance(origin, dict) else tool
    return f"{place.get('method') or ''} {place.get('path') or ''}".strip()


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not UTF-8.", where="FILE") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BadInput(f"{path} cannot be read: {reason.lower()}.", where="FILE") from None
