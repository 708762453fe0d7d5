"""Without a yard: keys on the database, the doctor, manifests, help; and what is said when nothing answers."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import jsonschema_rs
import orjson
import pytest

from tests.faces.cli.conftest import Command
from tests.faces.cli.yard import RunningYard, running_yard
from tests.requirements import requirement
from toolyard.core.principal import Scope
from toolyard.faces.cli import keys as keys_module
from toolyard.faces.cli.checkup import check_python
from toolyard.identity.keys import Keys
from toolyard.store.open import open_store

NOWHERE = "http://127.0.0.1:9"
HEAVY = ("mcp", "fastapi", "numpy", "jinja2", "pydantic", "aiohttp", "starlette", "uvicorn", "psycopg", "obstore")


@pytest.fixture(scope="module")
def closed_yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningYard]:
    """One that asks for a key."""
    with running_yard(tmp_path_factory.mktemp("closed"), demo=False) as yard:
        yield yard


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default address is one where nothing answers, whatever runs on this machine."""
    monkeypatch.setattr(keys_module, "DEFAULT_URL", NOWHERE)


@requirement("cli.everyday")
@pytest.mark.parametrize(
    "command", [["tools", "list"], ["calls", "list"], ["call", "a:b"], ["keys", "list"], ["import", "http://x/y"]]
)
def test_where_no_yard_runs_it_is_said_how_to_start_one(bare: Command, command: list[str]) -> None:
    ended = bare(*command, "--url", NOWHERE)

    assert (ended.code, ended.out) == (5, "")
    assert ended.err == (
        f"toolyard: No Toolyard answers at {NOWHERE}. "
        "Start one with `toolyard serve`, or name another with --url or TOOLYARD_URL.\n"
    )


def test_what_is_no_toolyard_and_what_is_no_address_are_told(bare: Command, demo_yard: RunningYard) -> None:
    other = bare("tools", "list", "--url", f"{demo_yard.petshop_url}/pets/1/picture")
    nonsense = bare("tools", "list", "--url", "localhost:8420")

    assert other.code == 5
    assert "is no Toolyard" in other.err
    assert (nonsense.code, nonsense.err) == (
        2,
        "toolyard: 'localhost:8420' is no address. Such as http://127.0.0.1:8420.\n",
    )


@requirement("cli.everyday")
def test_without_a_key_a_yard_lets_nobody_in(bare: Command, closed_yard: RunningYard) -> None:
    refused = bare("tools", "list", "--url", closed_yard.url)
    no_key = bare("keys", "create", "x", "--url", closed_yard.url)

    assert (refused.code, refused.out) == (4, "")
    assert "Set TOOLYARD_KEY" in refused.err
    assert no_key.code == 4
    assert "The first one is made at the console, or with this command while no yard runs." in no_key.err


@requirement("cli.everyday")
def test_the_first_key_is_made_straight_in_the_database(bare: Command, tmp_path: Path) -> None:
    database = str(tmp_path / "yard.db")

    made = bare("keys", "create", "first", "--scope", "admin", "--database", database)
    secret = made.out.strip()
    listed = bare("keys", "list", "--database", database, "--json").json

    assert made.code == 0, made.err
    assert [(key["name"], key["scopes"]) for key in listed] == [("first", ["admin"])]
    assert asyncio.run(scopes_of(database, secret)) == {Scope.ADMIN}
    assert bare("keys", "revoke", listed[0]["id"], "--database", database).code == 0
    assert bare("keys", "list", "--database", database, "--json").json[0]["live"] is False


async def scopes_of(database: str, secret: str) -> frozenset[Scope]:
    store = open_store(database)
    await store.start()
    try:
        return (await Keys(store).verify(secret)).scopes
    finally:
        await store.close()


@pytest.mark.usefixtures("nothing_runs")
def test_a_first_key_makes_the_data_folder_and_other_commands_do_not(bare: Command, tmp_path: Path) -> None:
    folder = tmp_path / "data"

    without = bare("keys", "list", "--url", NOWHERE, "--data-dir", str(folder))
    assert (without.code, folder.exists()) == (2, False)
    assert "no data folder" in without.err

    first = bare("keys", "create", "x", "--url", NOWHERE, "--data-dir", str(folder), "--json")
    assert first.json["key"].startswith("ty_")
    assert first.err == f"Using the database {folder}/toolyard.db.\n"
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_data_folder_that_is_named_is_meant_whatever_yard_answers(
    bare: Command, closed_yard: RunningYard, demo_yard: RunningYard, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(keys_module, "DEFAULT_URL", demo_yard.url)

    elsewhere = bare("keys", "create", "x", "--url", demo_yard.url, "--data-dir", str(tmp_path / "mine"), "--json")
    running = bare("keys", "create", "x", "--url", demo_yard.url, "--data-dir", str(closed_yard.data_dir))
    through_the_yard = bare("keys", "create", "x", "--url", demo_yard.url, "--json")

    assert (tmp_path / "mine" / "toolyard.db").is_file()
    assert elsewhere.err == f"Using the database {tmp_path}/mine/toolyard.db.\n"
    assert running.code == 1
    assert "in use by another Toolyard" in running.err
    assert through_the_yard.err == f"Done by the yard at {demo_yard.url}.\n"


def test_a_database_that_cannot_be_used_is_told(bare: Command, closed_yard: RunningYard, tmp_path: Path) -> None:
    locked = bare("keys", "list", "--database", str(closed_yard.data_dir / "toolyard.db"))
    nowhere = bare("keys", "list", "--database", str(tmp_path / "no" / "yard.db"))
    foreign = bare("keys", "list", "--database", "mysql://x/y")
    (tmp_path / "text.db").write_text("no database at all, but long enough to be looked at" * 100)
    corrupt = bare("keys", "list", "--database", str(tmp_path / "text.db"))

    assert (locked.code, locked.err.count("\n")) == (1, 1)
    assert "in use by another Toolyard" in locked.err
    assert (nowhere.code, foreign.code, corrupt.code) == (2, 2, 1)
    assert "does not exist" in nowhere.err
    assert "mysql" in foreign.err
    assert corrupt.err.startswith("toolyard: ")


def findings_of(bare: Command, *arguments: str) -> tuple[int, dict[str, tuple[str, str, str | None]]]:
    ended = bare("doctor", *arguments, "--json")
    return ended.code, {item["what"]: (item["state"], item["said"], item["advice"]) for item in ended.json}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@requirement("cli.everyday")
def test_the_doctor_finds_nothing_wrong_with_a_new_folder(bare: Command, tmp_path: Path) -> None:
    code, found = findings_of(bare, "--data-dir", str(tmp_path / "new"), "--port", str(free_port()))

    assert code == 0
    assert {state for state, _, _ in found.values()} <= {"ok", "warning"}
    assert list(found) == ["Python", "Data folder", "Disk space", "Database", "Port", "Manifest"]
    assert not (tmp_path / "new").exists()


@requirement("cli.everyday")
def test_the_doctor_tells_what_is_wrong_and_what_to_do(bare: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "bad.db").write_text("x" * 5000)
    (tmp_path / "bad.yaml").write_text("servers: [{id: A}]")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, found = findings_of(
            bare, str(tmp_path / "bad.yaml"), "--port", port, "--data-dir", str(tmp_path / "file"),
            "--database", str(tmp_path / "bad.db"),
        )  # fmt: skip

    assert code == 1
    assert found["Data folder"][0] == "failed"
    assert found["Database"][0] == "failed"
    assert found["Port"][0] == "failed"
    assert "--port" in (found["Port"][2] or "")
    assert found["Manifest"][:2] == ("failed", f"{tmp_path}/bad.yaml cannot be used")
    assert f"{tmp_path}/bad.yaml:1: servers[0].id: 'A' does not fit." in (found["Manifest"][2] or "")


@requirement("cli.everyday")
def test_the_doctor_contacts_the_manifests_providers(bare: Command, tmp_path: Path) -> None:
    (tmp_path / "toolyard.yaml").write_text(
        f"""\
agent_config: {{mcps: [{{id: gone, hostname: "http://127.0.0.1", port: 9}}]}}
providers:
  - {{id: notes, kind: mcp, command: ["{sys.executable}", -m, toolyard.demo.notes]}}
  - {{id: missing, kind: python, module: no_such_module}}
  - {{id: hooks, kind: webhook}}
  - {{id: slow, kind: mcp, command: [sh, -c, "sleep 3.5; echo no disk >&2; exit 3"]}}
"""
    )
    code, found = findings_of(
        bare, str(tmp_path / "toolyard.yaml"), "--data-dir", str(tmp_path), "--port", str(free_port())
    )

    assert code == 1
    assert found["Provider gone"][0] == "failed"
    assert "127.0.0.1:9" in found["Provider gone"][1]
    assert found["Provider missing"][0] == "warning"
    assert "no_such_module" in found["Provider missing"][1]
    assert found["Provider hooks"][:2] == ("warning", "kept, but this kind is not served yet")
    assert found["Provider slow"][0] == "warning"
    assert "Its last words: no disk" in found["Provider slow"][1]  # a start does not wait so long, the doctor does


def test_the_doctor_knows_a_yard_that_runs_here(bare: Command, demo_yard: RunningYard) -> None:
    port = demo_yard.url.rpartition(":")[2]

    code, found = findings_of(bare, "--data-dir", str(demo_yard.data_dir), "--port", port)

    assert code == 0
    assert found["Port"][:2] == ("ok", f"a Toolyard runs at 127.0.0.1:{port}")
    assert found["Database"][0] == "ok"


def test_the_doctor_takes_another_yards_answer_for_no_sign_of_health(
    bare: Command, demo_yard: RunningYard, tmp_path: Path
) -> None:
    (tmp_path / "toolyard.db").write_text("no database at all, but long enough to be looked at" * 100)

    code, found = findings_of(bare, "--data-dir", str(tmp_path), "--port", demo_yard.url.rpartition(":")[2])

    assert code == 1
    assert found["Database"][0] == "failed"


def test_a_data_folder_that_is_a_file_is_told_in_one_line(bare: Command, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for command in (["serve", "--port", "0"], ["keys", "create", "x"]):
        ended = bare(*command, "--data-dir", str(tmp_path / "file"))
        assert (ended.code, ended.err) == (1, f"toolyard: {tmp_path}/file: file exists.\n")


def test_an_old_python_is_told() -> None:
    assert check_python((3, 10)).state == "failed"


@requirement("manifest.top-level")
def test_the_manifests_schema_is_printed_for_editors(bare: Command) -> None:
    schema = bare("manifest", "schema").json

    assert set(schema["$defs"]["Manifest"]["properties"]) == {
        "agent_config", "providers", "servers", "agents", "skills", "settings",
    }  # fmt: skip
    jsonschema_rs.meta.validate(schema)


@requirement("manifest.mcps")
def test_a_manifest_is_checked_without_starting_anything(bare: Command, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("providers: [{id: a, kind: python, module: m}]\nservers: [{id: s}]\n")
    bad.write_text("agent_config: {mcps: [{id: a, hostname: http://a/b, port: 0, api_key: x}]}\n")

    refused = bare("manifest", "check", str(bad))

    assert bare("manifest", "check", str(good)).out == f"{good} is fine: 1 provider, 1 server, 0 agents.\n"
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.splitlines()[0] == "toolyard: the manifest cannot be used:"
    assert [line.split(": ")[1] for line in refused.err.splitlines()[1:]] == [
        f"agent_config.mcps[0].{field}" for field in ("hostname", "port", "api_key")
    ]
    assert bare("serve", str(bad)).err == refused.err


@requirement("cli.everyday")
def test_the_version_and_the_help_come_from_the_installed_command() -> None:
    command = Path(sys.executable).with_name("toolyard")

    assert subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout == (
        f"toolyard {version('toolyard')}\n"
    )
    assert subprocess.run([command, "toolz"], capture_output=True, text=True, check=False).returncode == 2


def test_the_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from toolyard.faces.cli.main import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        f"print('heavy:', [name for name in {HEAVY} if name in sys.modules])\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.splitlines()[-1] == "heavy: []"
    assert "Exit codes:" in ran.stdout


@requirement("cli.everyday")
def test_a_shell_can_complete_commands() -> None:
    command = Path(sys.executable).with_name("toolyard")
    env = {**os.environ, "_TOOLYARD_COMPLETE": "complete_bash", "COMP_WORDS": "toolyard cal", "COMP_CWORD": "1"}

    ran = subprocess.run([command], capture_output=True, text=True, check=False, env=env)

    assert ran.stdout.split() == ["call", "calls"]


def test_json_on_stdout_stays_json_when_something_is_noted(bare: Command, tmp_path: Path) -> None:
    made = bare("keys", "create", "x", "--database", str(tmp_path / "a.db"), "--json")

    assert orjson.loads(made.out)["name"] == "x"


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    command = Path(sys.executable).with_name("toolyard")
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run([command, "manifest", "schema"], stdout=writing, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writing)

    assert (ran.returncode, ran.stderr) == (1, b"")
