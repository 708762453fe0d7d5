"""A manifest file, read and checked: everything that is wrong is told at once, each with file, line and field."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec import inspect

from toolyard.core.errors import BadInput, ManifestError
from toolyard.manifest.checking import Checker
from toolyard.manifest.kinds import ProviderKind, added_kinds, find_kind, manifest_of, unknown_kinds
from toolyard.manifest.models import Manifest, PluginConfig
from toolyard.manifest.problems import Problem, Problems, field_name
from toolyard.manifest.rules import check_manifest
from toolyard.manifest.texts import Reading

if TYPE_CHECKING:
    from toolyard.manifest.source import Source

_MOST_TOLD = 20


class ManifestMistakes(ManifestError):
    """Several mistakes: the fields are the first one's, `str` has a line for each."""

    def __init__(self, mistakes: Sequence[ManifestError]) -> None:
        first = mistakes[0]
        super().__init__(
            first.message, file=first.file, line=first.line, field=first.field, suggestion=first.suggestion
        )
        self.mistakes = tuple(mistakes)

    def __str__(self) -> str:
        told = [str(mistake) for mistake in self.mistakes[:_MOST_TOLD]]
        more = len(self.mistakes) - len(told)
        return "\n".join([*told, f"... and {more} more."] if more else told)


def load(path: Path | str, env: Mapping[str, str] | None = None) -> Manifest:
    """Read a manifest; `env` is where `${VAR}` looks (None: this process's environment).

    Raises:
        ManifestError: anything that is wrong with the file; `ManifestMistakes` when it is more than one thing.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        said = f"the file cannot be read: {reason.lower()}."
        raise ManifestError(said, file=str(path), line=None, field=field_name(())) from None
    return loads(data, file=str(path), folder=path.parent, env=env)


def loads(
    data: bytes, *, file: str = "manifest.yaml", folder: Path | None = None, env: Mapping[str, str] | None = None
) -> Manifest:
    """Like `load`, for bytes; relative paths resolve against `folder` (None: the current one).

    Raises:
        ManifestError: as in `load`.
    """
    from toolyard.manifest.source import read

    problems = Problems()
    source = read(data, problems)
    if not problems:
        reading = Reading(env=os.environ if env is None else env, folder=folder or Path.cwd())
        wanted = manifest_of(_added_kinds(source.value, problems))
        if not problems:
            value = Checker(problems, reading).check(source.value, inspect.type_info(wanted))
            check_manifest(source.value, problems)
            if not problems:
                return msgspec.convert(value, wanted)
    raise _refusal(problems, source, file)


def _added_kinds(root: object, problems: Problems) -> list[ProviderKind[PluginConfig]]:
    """Of packages, as far as the manifest names them. One that is nowhere is told by the check of the fields."""
    entries = cast("dict[str, object]", root).get("providers") if isinstance(root, dict) else None
    found: list[ProviderKind[PluginConfig]] = []
    listed = cast("list[object]", entries) if isinstance(entries, list) else []
    known = set(added_kinds()) if unknown_kinds(listed) else set[str]()
    for name in sorted(unknown_kinds(listed) & known):
        try:
            found.append(find_kind(name))
        except BadInput as error:
            places = [at for at, entry in enumerate(listed) if unknown_kinds([entry]) == {name}]
            for at in places:
                problems.add(Problem(("providers", at, "kind"), error.message, error.suggestion))
    return found


def _refusal(problems: Problems, source: Source, file: str) -> ManifestError:
    mistakes = sorted((_mistake(problem, source, file) for problem in problems.found), key=lambda m: m.line or 0)
    return mistakes[0] if len(mistakes) == 1 else ManifestMistakes(mistakes)


def _mistake(problem: Problem, source: Source, file: str) -> ManifestError:
    message = problem.message
    if problem.earlier is not None:
        message = f"{message.removesuffix('.')}, in line {source.line(problem.earlier)}."
    return ManifestError(
        message,
        file=file,
        line=problem.line if problem.line is not None else source.line(problem.place),
        field=field_name(problem.place),
        suggestion=problem.suggestion,
    )
