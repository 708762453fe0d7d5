"""/v1/skills: a SKILL.md or a zip in, the same out; every version is kept."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import pytest

from tests.faces.http.conftest import Clients
from tests.requirements import requirement
from toolyard.app import App, Settings
from toolyard.core.principal import Scope
from toolyard.manifest import Manifest
from toolyard.skills import from_files, from_zip, to_zip

TEA = "---\nname: make-tea\ndescription: How to make tea.\n---\nBoil water.\n"
MARKDOWN = {"Content-Type": "text/markdown"}
ZIP = {"Content-Type": "application/zip"}


@requirement("skills.standard")
async def test_a_skill_is_made_read_replaced_exported_and_removed(local: httpx2.AsyncClient) -> None:
    made = await local.post("/v1/skills", content=TEA, headers=MARKDOWN)
    assert (made.status_code, made.headers["location"]) == (201, "/v1/skills/make-tea")
    with_file = from_files({"SKILL.md": TEA.encode(), "cups.txt": b"two"})
    replaced = await local.put("/v1/skills/make-tea", content=to_zip(with_file), headers=ZIP)
    assert [one["path"] for one in replaced.json()["files"]] == ["SKILL.md", "cups.txt"]
    better = TEA.replace("Boil", "Boil fresh")
    again = await local.put("/v1/skills/make-tea", content=better, headers=MARKDOWN)
    assert (again.json()["version"], len(again.json()["files"])) == (3, 2)

    assert (await local.get("/v1/skills/make-tea")).json()["text"] == better
    assert (await local.get("/v1/skills/make-tea?version=1")).json()["text"] == TEA
    history = (await local.get("/v1/skills/make-tea/history")).json()["items"]
    assert [(one["version"], one["author"]) for one in history] == [(n, "local:local") for n in (3, 2, 1)]
    exported = await local.get("/v1/skills/make-tea/export")
    assert exported.headers["content-disposition"] == 'attachment; filename="make-tea.zip"'
    assert from_zip(exported.content).files == {"SKILL.md": better.encode(), "cups.txt": b"two"}
    assert (await local.get("/v1/skills/make-tea/files/cups.txt")).content == b"two"
    assert (await local.get("/v1/skills/make-tea/files/cups.txt?version=2")).content == b"two"
    assert (await local.get("/v1/skills/make-tea/files/cups.txt?version=1")).status_code == 404

    assert (await local.delete("/v1/skills/make-tea")).status_code == 204
    assert (await local.get("/v1/skills/make-tea")).status_code == 404
    assert (await local.get("/v1/skills")).json()["items"] == []


@pytest.mark.parametrize(
    ("content", "headers", "status", "where"),
    [
        ("# no frontmatter", MARKDOWN, 422, "SKILL.md"),
        ("---\nname: Tea\ndescription: d\n---\n", MARKDOWN, 422, "SKILL.md: name"),
        (b"\xff", MARKDOWN, 422, "body"),
        (b"no zip", ZIP, 422, None),
        (TEA, {"Content-Type": "application/json"}, 422, "header:Content-Type"),
        (b"x" * (21 * 2**20), ZIP, 413, None),
    ],
)
async def test_what_is_no_skill_is_refused_with_its_place_and_nothing_is_kept(
    local: httpx2.AsyncClient, content: str | bytes, headers: dict[str, str], status: int, where: str | None
) -> None:
    refused = await local.post("/v1/skills", content=content, headers=headers)
    assert refused.status_code == status, refused.text
    if where is not None:
        assert where in refused.text
    assert (await local.get("/v1/skills")).json()["items"] == []


async def test_names_are_unique_and_an_address_names_its_own_skill(local: httpx2.AsyncClient) -> None:
    assert (await local.put("/v1/skills/make-tea", content=TEA, headers=MARKDOWN)).status_code == 404
    await local.post("/v1/skills", content=TEA, headers=MARKDOWN)
    assert (await local.post("/v1/skills", content=TEA, headers=MARKDOWN)).status_code == 409
    assert (await local.put("/v1/skills/other", content=TEA, headers=MARKDOWN)).status_code == 422
    for path in ("/v1/skills/other", "/v1/skills/other/history", "/v1/skills/make-tea?version=9"):
        assert (await local.get(path)).status_code == 404
    assert (await local.get("/v1/skills/make-tea/files/../../x")).status_code == 404
    assert (await local.get(f"/v1/skills/make-tea?version={10**20}")).status_code == 422


async def test_each_of_several_changes_at_once_is_told_its_own_version(local: httpx2.AsyncClient) -> None:
    made = await asyncio.gather(*(local.post("/v1/skills", content=TEA, headers=MARKDOWN) for _ in range(4)))
    assert sorted(one.status_code for one in made) == [201, 409, 409, 409]
    put = await asyncio.gather(*(local.put("/v1/skills/make-tea", content=TEA, headers=MARKDOWN) for _ in range(4)))
    assert sorted(one.json()["version"] for one in put) == [2, 3, 4, 5]


async def test_only_who_may_manage_changes_skills(local: httpx2.AsyncClient, clients: Clients) -> None:
    await local.post("/v1/skills", content=TEA, headers=MARKDOWN)
    async with await clients.with_scopes(Scope.CALL) as caller:
        assert (await caller.get("/v1/skills/make-tea")).status_code == 200
        assert (await caller.put("/v1/skills/make-tea", content=TEA, headers=MARKDOWN)).status_code == 403
        assert (await caller.delete("/v1/skills/make-tea")).status_code == 403


async def test_a_skill_of_the_manifest_is_served_and_changed_in_its_folder_only(tmp_path: Path) -> None:
    from tests.faces.http.client import client_of
    from toolyard.faces.http import build

    folder = tmp_path / "skills" / "make-tea"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(TEA)
    (tmp_path / "skills" / "broken").mkdir()
    (tmp_path / "skills" / "broken" / "SKILL.md").write_text("# nothing")
    settings = Settings(data_dir=tmp_path / "data", demo=True, manifest_dir=tmp_path)
    async with App.running(settings, Manifest(skills=("skills",))) as app, client_of(build(app)) as local:
        (listed,) = (await local.get("/v1/skills")).json()["items"]
        assert (listed["name"], listed["declared"], listed["version"]) == ("make-tea", True, None)
        refused = await local.put("/v1/skills/make-tea", content=TEA, headers=MARKDOWN)
        assert (refused.status_code, "declared in the manifest" in refused.text) == (409, True)
        assert (await local.delete("/v1/skills/make-tea")).status_code == 409
        assert (await local.get("/v1/skills/make-tea/history")).json()["items"] == []
        assert (await local.get("/v1/skills/make-tea?version=1")).status_code == 404
