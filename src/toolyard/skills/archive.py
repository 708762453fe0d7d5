"""A skill's folder as a zip. What comes from outside is looked at before anything of it is unpacked."""

from __future__ import annotations

import io
import stat
import zipfile
import zlib

from toolyard.core.errors import BadInput, TooLarge
from toolyard.skills.skill import MANIFEST, MOST_BYTES, MOST_FILES, Skill, check_path, from_files

_IGNORED = ("__MACOSX/", ".DS_Store")
_EARLIEST = (1980, 1, 1, 0, 0, 0)
_SYMLINK_BITS = 16
# What zipfile says when a zip's own figures and names make no sense: offsets before its start, no name, no UTF-8.
_CONFUSED = (ValueError, IndexError)
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def from_zip(data: bytes) -> Skill:
    """A zip of the folder, or of what is in it.

    Raises:
        BadInput: no zip, a link or a path that leads out of it, a file twice, or no skill.
        TooLarge: more than 512 files or 16 MiB when unpacked, whatever its directory says.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir() and not _is_ignored(entry.filename)]
            if len(entries) > MOST_FILES:
                raise TooLarge(f"A skill has at most {MOST_FILES} files; this zip has {len(entries)}.")
            files: dict[str, bytes] = {}
            left = MOST_BYTES
            for entry in entries:
                _check(entry, files)
                files[entry.filename] = _unpacked(archive, entry, left)
                left -= len(files[entry.filename])
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, *_CONFUSED) as error:
        raise BadInput(f"This is no zip that can be read: {error}.", suggestion="Zip the skill's folder.") from error
    return _within_its_folder(files)


def to_zip(skill: Skill) -> bytes:
    """The folder as a zip: the same bytes for the same skill."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in sorted(skill.files.items()):
            archive.writestr(zipfile.ZipInfo(f"{skill.name}/{path}", _EARLIEST), data, zipfile.ZIP_DEFLATED)
    return target.getvalue()


def _check(entry: zipfile.ZipInfo, files: dict[str, bytes]) -> None:
    # `orig_filename` still has what zipfile itself would have mended: backslashes, null bytes.
    check_path(entry.orig_filename)
    if stat.S_ISLNK(entry.external_attr >> _SYMLINK_BITS):
        raise BadInput(f"{entry.filename!r} is a link.", where=entry.filename, suggestion="Put the file itself in.")
    if entry.compress_type not in _METHODS:
        raise BadInput(
            f"{entry.filename!r} is packed in an unusual way.", where=entry.filename, suggestion="Zip it with deflate."
        )
    if entry.filename in files:
        raise BadInput(f"{entry.filename!r} is in the zip twice.", where=entry.filename)


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, left: int) -> bytes:
    with archive.open(entry) as source:
        data = source.read(left + 1)
    if len(data) > left:
        raise TooLarge(f"A skill is at most {MOST_BYTES} bytes when unpacked.")
    return data


def _within_its_folder(files: dict[str, bytes]) -> Skill:
    if MANIFEST in files:
        return from_files(files)
    folders = {path.partition("/")[0] for path in files}
    if len(folders) == 1 and f"{next(iter(folders))}/{MANIFEST}" in files:
        folder = next(iter(folders))
        return from_files({path.partition("/")[2]: data for path, data in files.items()}, folder=folder)
    raise BadInput(
        "There is no SKILL.md in the zip.", where=MANIFEST, suggestion="Zip one skill's folder, with SKILL.md in it."
    )


def _is_ignored(path: str) -> bool:
    return path.startswith(_IGNORED[0]) or path.rpartition("/")[2] == _IGNORED[1]
