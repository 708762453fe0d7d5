"""What people type every day, against a real yard."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import orjson
import pytest

from tests.faces.cli.conftest import Command
from tests.faces.cli.yard import RunningYard
from tests.requirements import requirement
from toolyard.demo.petshop import DOCUMENT
from toolyard.faces.cli import call as call_module


@requirement("cli.everyday")
def test_tools_are_listed_as_lines_for_pipes_and_as_json(toolyard: Command) -> None:
    listed = toolyard("tools", "list", "--provider", "functions")
    as_json = toolyard("tools", "list", "--provider", "functions", "--json")

    assert (listed.code, as_json.code) == (0, 0)
    assert [line[:4] for line in listed.lines] == [
        ["functions:add_working_days", "python", "Ungrouped", "ready"],
        ["functions:countdown", "python", "Ungrouped", "ready"],
        ["functions:text_statistics", "python", "Ungrouped", "ready"],
    ]
    assert [tool["id"] for tool in as_json.json] == [line[0] for line in listed.lines]
    assert as_json.json[0]["input_schema"]["properties"].keys() == {"start", "days"}


@requirement("cli.everyday")
def test_search_finds_a_tool_by_what_it_does(toolyard: Command) -> None:
    found = toolyard("tools", "search", "picture of a pet", "-n", "3")

    assert found.code == 0
    assert found.lines[0][0] == "petshop:getPetPicture"


@requirement("cli.everyday")
def test_show_tells_all_about_one_tool_and_an_unknown_one_is_not_found(toolyard: Command) -> None:
    shown = toolyard("tools", "show", "petshop:createPet", "--json")
    unknown = toolyard("tools", "show", "petshop:createPets")

    assert shown.json["method"] == "POST"
    assert shown.json["path"] == "/pets"
    assert (unknown.code, unknown.out) == (3, "")
    assert unknown.err.startswith("toolyard: There is no tool 'petshop:createPets'.")
    assert unknown.err.count("\n") == 1


@requirement("cli.everyday")
def test_a_call_types_its_arguments_by_the_tools_schema(toolyard: Command) -> None:
    text = toolyard("call", "functions:text_statistics", "-a", "text=12", "--json")
    date = toolyard("call", "functions:add_working_days", "-a", "start=2026-11-20", "-a", "days=1")

    assert text.json["result"]["structured"]["characters"] == 2
    assert text.json["state"] == "COMPLETE"
    assert orjson.loads(date.out) == {"day": "2026-11-23", "weekday": "Monday", "calendar_days": 3}


def test_a_call_takes_nested_fields_and_lists(toolyard: Command) -> None:
    made = toolyard(
        "call", "petshop:createPet", "-a", "name=Pip", "-a", "kind=parrot", "-a", "tags=loud", "-a", "tags=green",
        "-a", "origin.breeder=Hill Farm", "-a", "home.type=cage", "-a", "home.width_cm=80", "--json",
    )  # fmt: skip

    assert made.code == 0, made.err
    pet = made.json["result"]["structured"]
    assert pet == {
        "id": pet["id"],
        "name": "Pip",
        "kind": "parrot",
        "status": "available",
        "price": 0,
        "tags": ["loud", "green"],
        "origin": {"breeder": "Hill Farm"},
        "home": {"type": "cage", "width_cm": 80},
    }


def test_arguments_come_as_json_from_the_line_a_file_or_stdin(toolyard: Command, tmp_path: Path) -> None:
    (tmp_path / "arguments.json").write_text('{"kind": "cat"}')

    told = [
        toolyard("call", "petshop:listPets", "-d", '{"kind": "cat"}').out,
        toolyard("call", "petshop:listPets", "-d", f"@{tmp_path}/arguments.json").out,
        toolyard("call", "petshop:listPets", "-d", "-", stdin='{"kind": "cat"}').out,
        toolyard("call", "petshop:listPets", "-d", '{"kind": "dog"}', "-a", "kind=cat").out,
    ]

    assert {pet["name"] for pet in orjson.loads(told[0])["pets"]} == {"Miso", "Luna"}
    assert told[1:] == [told[0]] * 3


@requirement("cli.everyday")
def test_a_tool_that_fails_says_why_on_stderr_with_exit_code_1(toolyard: Command) -> None:
    failed = toolyard("call", "petshop:openTheTill")

    assert failed.code == 1
    assert failed.err.startswith("toolyard: upstream: ")
    assert "till is jammed" in failed.err + failed.out


@requirement("cli.everyday")
def test_arguments_that_do_not_fit_never_reach_the_tool(toolyard: Command) -> None:
    refused = toolyard("call", "functions:text_statistics", "-a", "txt=hello")

    assert refused.code == 2
    assert refused.out == ""
    assert "'text'" in refused.err


def test_a_long_result_is_printed_whole(toolyard: Command) -> None:
    text = "word " * 5000
    toolyard(
        "call", "notes:add", "-d", "-", stdin=orjson.dumps({"text": text[:9999], "tags": ["long"] * 2000}).decode()
    )

    found = toolyard("call", "notes:search", "-a", "query=word long")

    assert orjson.loads(found.out)["notes"][0]["tags"] == ["long"] * 2000


@pytest.mark.parametrize("argument", ["novalue", "=x", "a..b=1"])
def test_an_argument_that_is_none_is_refused(toolyard: Command, argument: str) -> None:
    refused = toolyard("call", "functions:text_statistics", "-a", argument)

    assert refused.code == 2
    assert refused.err == f"toolyard: {argument!r} is no argument. Write it as name=value.\n"


def test_a_picture_is_shown_as_where_it_is(toolyard: Command) -> None:
    shown = toolyard("call", "petshop:getPetPicture", "-a", "petId=1")

    assert shown.code == 0
    assert re.fullmatch(r"\[image image/png \d+ bytes, shown with --json\]\n", shown.out)


def test_a_slow_call_is_followed_to_its_end(toolyard: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_module, "_AT_FIRST", 0.0)

    ended = toolyard("call", "functions:countdown", "-a", "seconds=0.05", "--json")
    failed = toolyard("call", "functions:countdown", "-a", "seconds=99")

    assert ended.json["state"] == "COMPLETE"
    assert ended.json["result"]["content"] == [{"type": "text", "text": "Lift-off after 0.05 s."}]
    assert (failed.code, failed.err) == (
        1,
        "toolyard: upstream: A countdown takes 0 to 60 seconds. Give seconds from 0 to 60.\n",
    )


@requirement("cli.everyday")
def test_every_call_is_in_the_log_and_can_be_shown_and_exported(toolyard: Command, tmp_path: Path) -> None:
    made = toolyard("call", "functions:text_statistics", "-a", "text=in the log", "--json").json

    listed = toolyard("calls", "list", "--tool", "functions:text_statistics", "-n", "1", "--json").json
    shown = toolyard("calls", "show", made["id"], "--json").json
    lines = toolyard("calls", "export", "-q", "in the log")
    written = toolyard("calls", "export", "--format", "csv", "-o", str(tmp_path / "calls.csv"), "--since", "1h")

    assert [call["id"] for call in listed] == [made["id"]]
    assert shown["arguments"] == {"text": "in the log"}
    assert shown["result"]["structuredContent"] == made["result"]["structured"]
    assert [orjson.loads(line)["id"] for line in lines.out.splitlines()] == [made["id"]]
    assert (written.code, written.out) == (0, "")
    with (tmp_path / "calls.csv").open(newline="") as file:
        assert made["id"] in [row["id"] for row in csv.DictReader(file)]
    assert list(tmp_path.iterdir()) == [tmp_path / "calls.csv"]


def test_an_unknown_call_is_not_found(toolyard: Command) -> None:
    for command in (("calls", "show", "call_none"), ("calls", "cancel", "call_none")):
        assert toolyard(*command).code == 3


@pytest.mark.parametrize("since", ["yesterday", "5y", "2026-13-01"])
def test_a_time_that_is_none_is_refused(toolyard: Command, since: str) -> None:
    refused = toolyard("calls", "list", "--since", since)

    assert (refused.code, refused.out) == (2, "")
    assert refused.err == f"toolyard: {since!r} is no time. Write 2026-11-20T09:30:00Z, or an age: 30m, 12h, 7d.\n"


@requirement("cli.everyday")
def test_a_document_is_imported_from_a_file_and_from_a_url_and_deleted_as_one(
    toolyard: Command, demo_yard: RunningYard
) -> None:
    from_file = toolyard("import", str(DOCUMENT), "--cluster", "Copy", "--base-url", demo_yard.petshop_url, "--json")
    called = toolyard("call", "copy:getPet", "-a", "petId=1", "--json")
    again = toolyard("import", f"{demo_yard.petshop_url}/openapi.json", "--cluster", "Copy")
    deleted = toolyard("clusters", "delete", "Copy", "--json")
    clusters = toolyard("clusters", "list", "--json").json

    assert from_file.code == 0, from_file.err
    assert len(from_file.json["tools"]) == 8
    assert called.json["result"]["structured"]["name"] == "Miso"
    assert again.code == 0, again.err
    assert len(again.lines) == 8
    assert again.err.startswith("8 tools in cluster 'Copy'; 0 repaired, 0 dropped.")
    assert deleted.json == {"name": "Copy", "deleted": 8}
    assert {cluster["name"] for cluster in clusters} == {"Pet shop", "Ungrouped"}


def test_a_document_that_is_none_is_refused(toolyard: Command, tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("a: [")
    (tmp_path / "latin.yaml").write_bytes(b"\xff\xfe\xff")

    assert toolyard("import", str(tmp_path / "none.yaml")).err == (
        f"toolyard: {tmp_path}/none.yaml cannot be read: no such file or directory.\n"
    )
    assert toolyard("import", str(tmp_path / "latin.yaml")).code == 2
    broken = toolyard("import", str(tmp_path / "broken.yaml"))
    assert broken.code == 2
    assert broken.err.startswith("toolyard: ")


@requirement("cli.everyday")
def test_servers_are_added_listed_shown_and_removed(toolyard: Command, demo_yard: RunningYard) -> None:
    added = toolyard("servers", "add", "texts", "-t", "functions:*", "-t", "!*:countdown", "--title", "Texts")
    shown = toolyard("servers", "show", "texts", "--json").json
    listed = toolyard("servers", "list", "--json").json
    removed = toolyard("servers", "remove", "texts")

    assert added.err == f"Serving at {demo_yard.url}/mcp/texts\n"
    assert (shown["tools"], shown["title"], shown["tool_count"]) == (["functions:*", "!*:countdown"], "Texts", 2)
    assert {server["id"] for server in listed} == {"agent", "default", "readonly", "texts"}
    assert removed.code == 0
    assert toolyard("servers", "show", "texts").code == 3
    assert toolyard("servers", "remove", "default").code == 6


@requirement("cli.everyday")
def test_providers_are_listed_with_their_state_and_refreshed(toolyard: Command) -> None:
    listed = {line[0]: line[1:4] for line in toolyard("providers", "list").lines}

    assert listed["petshop"] == ["openapi", "up", "8"]
    assert listed["notes"] == ["mcp", "up", "3"]
    assert listed["functions"] == ["python", "up", "3"]
    assert toolyard("providers", "refresh", "notes").err == "notes is up with 3 tools.\n"
    assert toolyard("providers", "show", "petshop", "--json").json["config"]["cluster"] == "Pet shop"
    assert toolyard("providers", "show", "nobody").code == 3
    assert toolyard("providers", "remove", "notes").code == 6


@requirement("cli.everyday")
def test_a_key_is_created_used_listed_and_revoked(toolyard: Command) -> None:
    made = toolyard("keys", "create", "ci", "--scope", "call", "--scope", "read", "--days", "2", "--json").json

    assert toolyard("tools", "list", key=made["key"]).code == 0
    assert toolyard("keys", "list", key=made["key"]).code == 4
    assert {"name": "ci", "scopes": ["call", "read"], "live": True}.items() <= next(
        key for key in toolyard("keys", "list", "--json").json if key["id"] == made["id"]
    ).items()
    assert toolyard("keys", "revoke", made["id"]).code == 0
    refused = toolyard("tools", "list", key=made["key"])
    assert (refused.code, refused.out) == (4, "")
