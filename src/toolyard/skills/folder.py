"""Skills on disk."""

from __future__ import annotations

from pathlib import Path

from toolyard.core.errors import BadInput, TooLarge
from toolyard.skills.skill import MANIFEST, MOST_BYTES, MOST_FILES, Skill, from_files


def from_folder(folder: Path) -> Skill:
    """The skill in a folder of its own name. Hidden files are left out; links are refused.

    Raises:
        BadInput: no folder, or no skill in it.
        TooLarge: more than 512 files or 16 MiB.
    """
    if not folder.is_dir():
        raise BadInput(f"There is no folder {str(folder)!r}.", where=str(folder))
    files: dict[str, bytes] = {}
    size = 0
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if any(part.startswith(".") for part in inside.parts):
            continue
        if path.is_symlink():
            raise BadInput(f"{inside.as_posix()!r} is a link.", where=str(path), suggestion="Put the file there.")
        if path.is_file():
            size += path.stat().st_size
            if size > MOST_BYTES:
                raise TooLarge(f"A skill is at most {MOST_BYTES} bytes; there is more in {str(folder)!r}.")
            files[inside.as_posix()] = path.read_bytes()
        if len(files) > MOST_FILES:
            break
    return from_files(files, folder=folder.resolve().name)


def skills_in(folder: Path) -> list[Path]:
    """The folders of skills in a folder, or the folder itself where it is one."""
    if (folder / MANIFEST).is_file():
        return [folder]
    return sorted(path.parent for path in folder.glob(f"*/{MANIFEST}"))
