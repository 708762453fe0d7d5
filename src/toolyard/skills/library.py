"""All skills of a deployment: those of the manifest's folders, and those imported or written, with history."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import orjson
import structlog

from toolyard.core.errors import Conflict, NotFound, ToolyardError
from toolyard.core.json import JsonObject
from toolyard.skills.folder import from_folder, skills_in
from toolyard.skills.skill import Skill, SkillFile, from_files
from toolyard.store import skills as rows
from toolyard.store.base import Connection, Store

_log = structlog.stdlib.get_logger("toolyard.skills")


@dataclass(frozen=True, slots=True)
class SkillEntry:
    """A skill as the library knows it without its files. `version` counts from 1; a declared skill has none."""

    frontmatter: JsonObject
    files: tuple[SkillFile, ...]
    version: int
    updated: float
    declared: bool = False

    @property
    def name(self) -> str:
        return str(self.frontmatter["name"])

    @property
    def description(self) -> str:
        return str(self.frontmatter["description"])

    @property
    def title(self) -> str:
        """What people call it: the metadata's title, or else its name."""
        return self.said("title") or self.name

    @property
    def category(self) -> str:
        return self.said("category")

    @property
    def apps(self) -> list[str]:
        """The apps that it is about: a list, or words with commas, in the metadata."""
        metadata = self.frontmatter.get("metadata")
        given = metadata.get("apps") if isinstance(metadata, dict) else None
        if isinstance(given, list):
            return [str(app) for app in given]
        return [app.strip() for app in given.split(",") if app.strip()] if isinstance(given, str) else []

    def said(self, key: str) -> str:
        metadata = self.frontmatter.get("metadata")
        value = metadata.get(key) if isinstance(metadata, dict) else None
        return value if isinstance(value, str) else ""


class Library:
    """The index is in memory, the files are read when they are asked for."""

    def __init__(self, store: Store, changed: Callable[[], None]) -> None:
        """`changed` tells the other nodes to `load` again."""
        self._store = store
        self._changed = changed
        self._entries: dict[str, SkillEntry] = {}
        self._declared: dict[str, Skill] = {}
        self._loading = anyio.Lock()
        self._watchers: list[Callable[[], None]] = []

    def on_change(self, callback: Callable[[], None]) -> None:
        """Have `callback` told whenever this node knows other skills than before, wherever they were changed."""
        self._watchers.append(callback)

    async def declare(self, folders: Iterable[Path]) -> None:
        """The skills of the manifest's folders. One that cannot be read is said in the log, and costs no other."""
        for folder in folders:
            paths = skills_in(folder)
            if not paths:
                _log.warning("there are no skills in this folder", folder=str(folder))
            for path in paths:
                try:
                    skill = from_folder(path)
                except (ToolyardError, OSError) as error:
                    _log.error("a skill cannot be read", folder=str(path), cause=str(error))
                    continue
                if skill.name in self._declared:
                    _log.warning("a skill is there twice; the first is served", skill=skill.name, left_out=str(path))
                    continue
                self._declared[skill.name] = skill

    async def load(self) -> None:
        """Read the index again, as other nodes may have changed it. What is declared comes before what was imported."""
        # One at a time: an index that was read earlier must not come after a later one.
        async with self._loading:
            kept = await self._store.read(rows.index)
            found = {row.name: _entry(row) for row in kept}
            for name, skill in self._declared.items():
                found[name] = SkillEntry(skill.frontmatter, skill.listing, version=0, updated=0.0, declared=True)
            before, self._entries = self._entries, {name: found[name] for name in sorted(found)}
        if self._entries != before:
            for callback in self._watchers:
                callback()

    @property
    def entries(self) -> Sequence[SkillEntry]:
        """Sorted by name."""
        return tuple(self._entries.values())

    def find(self, name: str) -> SkillEntry | None:
        return self._entries.get(name)

    def entry(self, name: str) -> SkillEntry:
        """
        Raises:
            NotFound: there is no such skill.
        """
        found = self._entries.get(name)
        if found is None:
            raise NotFound(f"There is no skill {name[:100]!r}.", suggestion="List them to see what there is.")
        return found

    async def skill(self, name: str, version: int | None = None) -> Skill:
        """With its files; of an earlier version, where one is named.

        Raises:
            NotFound: there is no such skill or version.
        """
        if version is None:
            self.entry(name)
        if name in self._declared:
            if version is None:
                return self._declared[name]
            raise NotFound(f"The skill {name!r} is declared in the manifest, and has no versions here.")
        content = await self._store.read(partial(rows.content, name=name, version=version))
        if content is None:
            which = "skill" if version is None else f"version {version} of the skill"
            raise NotFound(f"There is no {which} {name[:100]!r}.")
        return _decoded(content)

    async def save(self, skill: Skill, author: str, *, new: bool | None = None) -> SkillEntry:
        """Keep a skill, as a new version where there is one of its name. `new` insists that there is none, or one.

        Raises:
            Conflict: it is declared in the manifest, or exists although it should be new.
            NotFound: it does not exist although it should not be new.
        """
        self._must_be_ours(skill.name)
        known = skill.name in self._entries
        if new is True and known:
            raise Conflict(
                f"There is a skill {skill.name!r} already.", suggestion="Change that one, or choose another name."
            )
        if new is False and not known:
            raise NotFound(
                f"There is no skill {skill.name!r}.",
                suggestion="List them to see what there is, or add it as a new one.",
            )
        index = orjson.dumps({"frontmatter": skill.frontmatter, "files": [_listed(one) for one in skill.listing]})
        write = partial(
            rows.save, name=skill.name, index=index.decode(), content=_encoded(skill), author=author, new=new is True
        )
        row = await self._store.tx(write)
        if row is None:
            raise Conflict(
                f"There is a skill {skill.name!r} already.", suggestion="Change that one, or choose another name."
            )
        await self.load()
        self._changed()
        return _entry(row)  # its own version: another one may have been kept meanwhile

    async def remove(self, name: str) -> None:
        """With all its versions.

        Raises:
            NotFound, Conflict: as `save`.
        """
        self.entry(name)
        self._must_be_ours(name)

        def delete(c: Connection) -> None:
            rows.delete(c, name)

        await self._store.tx(delete)
        await self.load()
        self._changed()

    async def history(self, name: str) -> list[rows.Version]:
        """Newest first; empty for a declared skill, whose history is that of its folder."""
        if self.entry(name).declared:
            return []
        return await self._store.read(partial(rows.versions, name=name))

    def _must_be_ours(self, name: str) -> None:
        if name in self._declared:
            raise Conflict(
                f"The skill {name!r} is declared in the manifest.", suggestion="Change its folder and start again."
            )


def _entry(row: rows.SkillRow) -> SkillEntry:
    index = orjson.loads(row.index)
    return SkillEntry(index["frontmatter"], tuple(SkillFile(*one) for one in index["files"]), row.version, row.updated)


def _listed(file: SkillFile) -> list[object]:
    return [file.path, file.digest, file.size, file.mime_type]


def _encoded(skill: Skill) -> str:
    return orjson.dumps({path: b64encode(data).decode() for path, data in skill.files.items()}).decode()


def _decoded(content: str) -> Skill:
    return from_files({path: b64decode(data) for path, data in orjson.loads(content).items()})
