"""`toolyard skills`: procedures that agents load when they need them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolyard.core.errors import BadInput
from toolyard.core.json import JsonObject
from toolyard.faces.cli.options import DEFAULT_URL, AsJson, Url
from toolyard.faces.cli.output import note, print_json, print_table, texts
from toolyard.faces.cli.yard import Yard, segment, with_yard
from toolyard.skills import MANIFEST, Skill, from_folder, from_text, from_zip, to_zip

group = typer.Typer(no_args_is_help=True, help="List, show, import, export, check and remove skills.")

SkillName = Annotated[str, typer.Argument(metavar="SKILL", help="The skill's name.")]
SkillPath = Annotated[Path, typer.Argument(help="A skill's folder, its SKILL.md, or a zip of the folder.", exists=True)]


@group.command("list")
def list_skills(*, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List skills."""
    found = with_yard(url, lambda yard: yard.pages("/v1/skills", {}, 10_000))
    if as_json:
        print_json(found)
        return
    rows = [
        (one["name"], one["title"], one.get("category"), texts(one.get("apps")), one["description"]) for one in found
    ]
    print_table(("skill", "title", "category", "apps", "description"), rows, empty="There are no skills.")


@group.command("show")
def show(skill: SkillName, *, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Print a skill's SKILL.md."""

    async def body(yard: Yard) -> JsonObject:
        return await yard.get(f"/v1/skills/{segment(skill)}")

    found = with_yard(url, body)
    if as_json:
        print_json(found)
    else:
        typer.echo(str(found["text"]), nl=False)


@group.command("import")
def import_skill(path: SkillPath, *, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Import a skill; one of its name gets another version."""
    skill = read(path)

    async def body(yard: Yard) -> JsonObject:
        known = {str(one["name"]) for one in await yard.pages("/v1/skills", {}, 10_000)}
        address = f"/v1/skills/{segment(skill.name)}" if skill.name in known else "/v1/skills"
        method = "PUT" if skill.name in known else "POST"
        return await yard.request(method, address, body=to_zip(skill), kind="application/zip")

    made = with_yard(url, body)
    if as_json:
        print_json(made)
    else:
        note(f"Imported the skill {skill.name!r}, version {made['version']}.")


@group.command("export")
def export(
    skill: SkillName,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The zip to write; NAME.zip without it.")
    ] = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Write a skill's folder as a zip."""
    target = output or Path(f"{skill}.zip")

    async def body(yard: Yard) -> bytes:
        async with yard.stream(f"/v1/skills/{segment(skill)}/export", {}, accept="application/zip") as chunks:
            return b"".join([chunk async for chunk in chunks])

    target.write_bytes(with_yard(url, body))
    note(f"Wrote {target}.")


@group.command("validate")
def validate(path: SkillPath, *, as_json: AsJson = False) -> None:
    """Check a skill against the standard, without importing it."""
    skill = read(path)
    if as_json:
        print_json({"name": skill.name, "description": skill.description, "files": [one.path for one in skill.listing]})
    else:
        note(f"{skill.name!r} is a good skill: {len(skill.files)} file{'' if len(skill.files) == 1 else 's'}.")


@group.command("remove")
def remove(skill: SkillName, *, url: Url = DEFAULT_URL) -> None:
    """Remove a skill and its versions."""

    async def body(yard: Yard) -> JsonObject:
        return await yard.request("DELETE", f"/v1/skills/{segment(skill)}")

    with_yard(url, body)
    note(f"Removed the skill {skill!r}.")


def read(path: Path) -> Skill:
    """
    Raises:
        BadInput, TooLarge: it is no skill, and why.
    """
    if path.is_dir():
        return from_folder(path)
    if path.name == MANIFEST:
        return from_folder(path.parent)
    if path.suffix.lower() == ".zip":
        return from_zip(path.read_bytes())
    try:
        return from_text(path.read_text("utf-8"))
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is no UTF-8: byte {error.start}.", where=str(path)) from error
