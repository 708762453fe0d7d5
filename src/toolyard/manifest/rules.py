"""Rules between fields. They read the plain input, so that they speak also when other fields are wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from toolyard.core.names import did_you_mean
from toolyard.manifest.problems import Field, Problem, Problems

Entry = dict[str, object]


def check_manifest(root: object, problems: Problems) -> None:
    if not isinstance(root, dict):
        return
    manifest = cast("Entry", root)
    agent = _fields(manifest.get("agent_config"))
    short = list(_entries(agent.get("mcps"), ("agent_config", "mcps")))
    providers = list(_entries(manifest.get("providers"), ("providers",)))
    _unique([*short, *providers], problems)
    for place, entry in providers:
        check_provider(entry, problems, place)
    _unique(list(_entries(manifest.get("servers"), ("servers",))), problems)
    agents = list(_entries(manifest.get("agents"), ("agents",)))
    own = [(("agent_config",), cast("Entry", {"id": "default"}))] if agent else []
    _unique([*own, *agents], problems)
    known = [entry["id"] for _, entry in [*short, *providers] if isinstance(entry.get("id"), str)]
    for place, holder in [(("agent_config",), agent), *agents]:
        _check_reevaluation(holder, place, cast("list[str]", known), problems)


def check_provider(entry: Entry, problems: Problems, place: Field = ()) -> None:
    kind = entry.get("kind")
    if kind == "mcp":
        _check_mcp(entry, problems, place)
    elif kind in ("webhook", "javascript"):
        names: dict[object, Field] = {}
        for tool_place, tool in _entries(entry.get("tools"), (*place, "tools")):
            _once((*tool_place, "name"), tool.get("name"), names, problems)


def _check_mcp(entry: Entry, problems: Problems, place: Field) -> None:
    given = [name for name in ("url", "hostname", "command") if entry.get(name) is not None]
    if len(given) != 1:
        said = "no address" if not given else f"both {' and '.join(given)}"
        hint = "Give exactly one: url, or hostname with port, or command."
        problems.add(Problem((*place, given[1]) if given else place, f"an mcp provider with {said}.", hint))
        return
    owns = {"port": "hostname", "env": "command", "cwd": "command"}
    wrong = [name for name, owner in owns.items() if entry.get(name) and owner not in given]
    if "command" in given:
        wrong += [name for name in ("api_key", "headers", "era") if entry.get(name)]
    for name in wrong:
        problems.add(Problem((*place, name), f"this field does not go with {given[0]}."))
    if "hostname" in given and "port" not in entry:
        problems.add(Problem((*place, "port"), "this field is missing; hostname needs one."))
    expected = "stdio" if "command" in given else "streamable-http"
    if entry.get("transport") not in (None, expected) and entry.get("transport") in ("stdio", "streamable-http"):
        problems.add(Problem((*place, "transport"), f"{given[0]} goes with the transport {expected}."))


def _check_reevaluation(holder: Entry, place: Field, known: list[str], problems: Problems) -> None:
    context = _fields(holder.get("context"))
    for at, entry in _entries(context.get("reevaluation_tools"), (*place, "context", "reevaluation_tools")):
        tool = entry.get("id")
        namespace, colon, _ = tool.partition(":") if isinstance(tool, str) else ("", "", "")
        if colon and namespace not in known:
            said = f"no provider with the id {namespace!r} is declared here."
            problems.add(Problem((*at, "id"), said, did_you_mean(namespace, known)))


def _unique(entries: list[tuple[Field, Entry]], problems: Problems) -> None:
    seen: dict[object, Field] = {}
    for place, entry in entries:
        _once((*place, "id"), entry.get("id"), seen, problems)


def _once(place: Field, value: object, seen: dict[object, Field], problems: Problems) -> None:
    if not isinstance(value, str):
        return
    if value in seen:
        problems.add(Problem(place, f"{value!r} is used already.", "Give each its own.", earlier=seen[value]))
    else:
        seen[value] = place


def _entries(value: object, place: Field) -> Iterator[tuple[Field, Entry]]:
    if isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            if isinstance(item, dict):
                yield (*place, index), cast("Entry", item)


def _fields(value: object) -> Entry:
    return cast("Entry", value) if isinstance(value, dict) else {}
