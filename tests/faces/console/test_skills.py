"""The pages of skills: written, imported, read as a page, edited with a preview, every version kept."""

from __future__ import annotations

import httpx2
from playwright.async_api import expect

from tests.faces.console.browser import Tabs
from tests.faces.console.page import Page
from tests.requirements import requirement
from toolyard.app import App
from toolyard.catalog import Server
from toolyard.skills import from_files, from_text, to_zip

TEA = """---
name: make-tea
description: How to make tea.
metadata: {title: Making tea, category: Kitchen}
---
# Tea

1. Boil **fresh** water.
2. <script>alert(1)</script> [bad](javascript:alert(1)) ![spy](https://spy.example/x.png)
"""


async def csrf_of(client: httpx2.AsyncClient) -> str:
    return Page.of(await client.get("/skills")).all("input", name="csrf")[0].attributes["value"]


@requirement("skills.standard")
async def test_a_skill_is_imported_from_a_zip_and_edited_with_its_history(client: httpx2.AsyncClient, app: App) -> None:
    data = to_zip(from_files({"SKILL.md": TEA.encode(), "cups.txt": b"two"}))
    csrf = await csrf_of(client)
    made = await client.post("/skills", data={"csrf": csrf, "text": ""}, files={"file": ("tea.zip", data)})
    assert (made.status_code, made.headers["location"]) == (303, "/skills/make-tea?notice=skill-saved")
    text = TEA.replace("fresh", "cold").replace("\n", "\r\n")
    seen = await client.post("/edit-skill/make-tea", data={"csrf": csrf, "text": text, "preview": "1"})
    assert "<strong>cold</strong>" in seen.text
    assert [one.version for one in await app.skills.history("make-tea")] == [1]
    await client.post("/edit-skill/make-tea", data={"csrf": csrf, "text": text})
    skill = await app.skills.skill("make-tea")
    assert (skill.text, sorted(skill.files)) == (TEA.replace("fresh", "cold"), ["SKILL.md", "cups.txt"])
    page = Page.of(await client.get("/skills/make-tea?version=1"))
    assert "<strong>fresh</strong>" in page.html
    assert [one.text for one in page.all("a") if one.text.startswith("Version")] == ["Version 2", "Version 1"]
    await client.post("/remove-skill/make-tea", data={"csrf": csrf})
    assert app.skills.entries == ()


async def test_markdown_runs_and_fetches_nothing(client: httpx2.AsyncClient, app: App) -> None:
    await app.skills.save(from_text(TEA), "local:tests")
    page = Page.of(await client.get("/skills/make-tea"))
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.html
    assert not [one for one in page.all("a") if "javascript" in one.attributes.get("href", "")]
    assert not [one for one in page.all("img") if "spy" in one.attributes.get("src", "")]


async def test_a_mistake_is_told_and_the_text_stays(client: httpx2.AsyncClient, app: App) -> None:
    csrf = await csrf_of(client)
    refused = await client.post("/skills", data={"csrf": csrf, "text": TEA.replace("make-tea", "Make Tea")})
    assert refused.status_code == 422
    assert "single hyphens" in refused.text
    assert "Boil **fresh** water." in Page.of(refused).one("textarea", id="text").text
    await app.skills.save(from_text(TEA), "local:tests")
    renamed = await client.post("/edit-skill/make-tea", data={"csrf": csrf, "text": TEA.replace("make-tea", "tea")})
    assert (renamed.status_code, "the folder is called" in renamed.text) == (422, True)
    again = await client.post("/skills", data={"csrf": csrf, "text": TEA})
    assert (again.status_code, "choose another name" in again.text) == (422, True)
    for path in ("/skills/nothing", "/skills/make-tea?version=9"):
        assert (await client.get(path)).status_code == 404
    assert (await client.get("/skills/make-tea?version=x")).status_code == 422


async def test_a_skill_names_the_servers_that_show_it(client: httpx2.AsyncClient, app: App) -> None:
    await app.skills.save(from_text(TEA), "local:tests")
    for server in (
        Server("everything", retrieve_skill=True),
        Server("kitchen", skills=("make-*",)),
        Server("coffee-only", retrieve_skill=True, skills=("*", "!*tea")),
    ):
        await app.save_server(server)
    page = Page.of(await client.get("/skills/make-tea"))
    shown = [one.text for one in page.all("a") if one.attributes.get("href", "").startswith("/servers/")]
    assert shown == ["everything", "kitchen"]


async def test_the_files_of_an_earlier_version_are_those_of_then(client: httpx2.AsyncClient, app: App) -> None:
    for cups in (b"two", b"four"):
        await app.skills.save(from_files({"SKILL.md": TEA.encode(), "cups.txt": cups}), "local:tests")
    page = Page.of(await client.get("/skills/make-tea?version=1"))
    (link,) = [one.attributes["href"] for one in page.all("a") if one.text == "cups.txt"]
    assert link == "/v1/skills/make-tea/files/cups.txt?version=1"


async def test_a_person_writes_a_skill_and_reads_it(tabs: Tabs) -> None:
    page = await tabs.open("/skills")
    await page.get_by_label("Or write its SKILL.md").fill(TEA)
    await page.get_by_role("button", name="Save skill").click()
    await expect(page.get_by_role("heading", name="Making tea")).to_be_visible()
    await expect(page.locator(".prose strong")).to_have_text("fresh")
    await page.get_by_role("link", name="Edit").click()
    await page.get_by_role("button", name="Preview").click()
    await expect(page.get_by_label("Preview").locator("li")).to_have_count(2)
