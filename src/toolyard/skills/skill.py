"""One skill: a SKILL.md with its frontmatter, and the files beside it."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from toolyard.core.errors import BadInput, TooLarge
from toolyard.core.json import JsonObject
from toolyard.skills.frontmatter import check, split

MANIFEST = "SKILL.md"
MOST_FILES = 512
MOST_BYTES = 16 * 1024 * 1024
LONGEST_PATH = 255
_MARKDOWN = "text/markdown"


@dataclass(frozen=True, slots=True)
class SkillFile:
    """`digest` is `sha256:` and 64 hex digits over the raw bytes; `size` is in bytes."""

    path: str
    digest: str
    size: int
    mime_type: str


@dataclass(frozen=True)
class Skill:
    """`files` by path with `/` between the parts, SKILL.md among them; `frontmatter` is verbatim."""

    frontmatter: JsonObject
    body: str
    files: Mapping[str, bytes]

    @property
    def name(self) -> str:
        return str(self.frontmatter["name"])

    @property
    def description(self) -> str:
        return str(self.frontmatter["description"])

    @property
    def text(self) -> str:
        """The whole SKILL.md."""
        return self.files[MANIFEST].decode()

    @cached_property
    def listing(self) -> tuple[SkillFile, ...]:
        """Every file, sorted by path."""
        return tuple(
            SkillFile(path, f"sha256:{hashlib.sha256(data).hexdigest()}", len(data), mime_type_of(path))
            for path, data in sorted(self.files.items())
        )


def from_files(files: Mapping[str, bytes], *, folder: str | None = None) -> Skill:
    """A skill from the files of its folder, by path relative to it. `folder` is the folder's name, where there is one.

    Raises:
        BadInput: no SKILL.md, a path that leads elsewhere, or frontmatter that is not as the standard wants it.
        TooLarge: more than 512 files or 16 MiB.
    """
    if MANIFEST not in files:
        raise BadInput("There is no SKILL.md.", where=MANIFEST, suggestion="It must be in the folder itself.")
    if len(files) > MOST_FILES:
        raise TooLarge(f"A skill has at most {MOST_FILES} files; this one has {len(files)}.")
    size = sum(map(len, files.values()))
    if size > MOST_BYTES:
        raise TooLarge(f"A skill is at most {MOST_BYTES} bytes; this one is {size}.")
    for path in files:
        check_path(path)
        _check_folders(path, files)
    try:
        text = files[MANIFEST].decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"SKILL.md is no UTF-8: byte {error.start}.", where=MANIFEST) from error
    frontmatter, body = split(text)
    check(frontmatter, folder=folder)
    return Skill(frontmatter, body, dict(files))


def from_text(text: str) -> Skill:
    """A skill that is nothing but its SKILL.md. Raises as `from_files`."""
    return from_files({MANIFEST: text.encode()})


def check_path(path: str) -> None:
    """
    Raises:
        BadInput: it is absolute, leads out of the folder, or could mean something else on another system.
    """
    parts = path.split("/")
    hostile = "\\" in path or ":" in path or any(ord(character) < 32 for character in path)
    if not path or len(path) > LONGEST_PATH or hostile or any(part in ("", ".", "..") for part in parts):
        raise BadInput(
            f"The path {path[:100]!r} is refused.", where=path[:100], suggestion="Use relative paths within the folder."
        )


def _check_folders(path: str, files: Mapping[str, bytes]) -> None:
    parts = path.split("/")
    for end in range(1, len(parts)):
        folder = "/".join(parts[:end])
        if folder in files:
            raise BadInput(f"{folder[:100]!r} is both a file and a folder.", where=path[:100])


def mime_type_of(path: str) -> str:
    if path.lower().endswith((".md", ".markdown")):
        return _MARKDOWN
    return mimetypes.guess_type(path)[0] or "application/octet-stream"
