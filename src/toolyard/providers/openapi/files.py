"""The files beside a root document that its `$ref`s lead to: below its folder, or on its origin, and nowhere else."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urljoin, urlsplit

from toolyard.core.errors import DocumentError
from toolyard.providers.openapi.loading import read_file

MOST_FILES = 5_000
MOST_BYTES = 200 * 1024 * 1024


class Files(Protocol):
    """`""` is the root document; every other file has a name that `read` understands."""

    def join(self, current: str, reference: str) -> str | None:
        """The file that `reference` (without fragment) means when it stands in `current`; None: not allowed."""
        ...

    def read(self, name: str) -> bytes:
        """
        Raises:
            DocumentError: it cannot be had.
        """
        ...


class NoFiles:
    """Pasted text and uploads have no folder."""

    def join(self, current: str, reference: str) -> str | None:
        return None

    def read(self, name: str) -> bytes:
        raise DocumentError(f"{name} cannot be read: the document was not imported from a file or a URL.")


class Folder:
    """Names are paths relative to the root document's folder, with forward slashes."""

    def __init__(self, root: Path) -> None:
        self._folder = root.parent.resolve()
        self._root = root.name

    def join(self, current: str, reference: str) -> str | None:
        if urlsplit(reference).scheme or reference.startswith("/"):
            return None
        name = posixpath.normpath(posixpath.join(posixpath.dirname(current), unquote(reference)))
        if name.startswith("../") or name in ("..", "."):
            return None
        return "" if name == self._root else name

    def read(self, name: str) -> bytes:
        path = (self._folder / name).resolve()
        if not path.is_relative_to(self._folder):
            raise DocumentError(f"{name} leads out of the folder of the document.")
        return read_file(path)


class Origin:
    """Names are absolute URLs on the origin of the root document."""

    def __init__(self, root_url: str, fetch: Callable[[str], bytes]) -> None:
        self._root = root_url
        self._fetch = fetch

    def join(self, current: str, reference: str) -> str | None:
        try:
            url = urljoin(current or self._root, reference)
            there, here = urlsplit(url), urlsplit(self._root)
        except ValueError:
            return None
        if (there.scheme, there.netloc) != (here.scheme, here.netloc):
            return None
        return "" if url == self._root else url

    def read(self, name: str) -> bytes:
        return self._fetch(name)
