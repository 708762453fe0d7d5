"""The YAML between the dashes of a SKILL.md, and what the standard asks of it (agentskills.io, "Specification")."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import cast

import orjson

from toolyard.core.errors import BadInput
from toolyard.core.json import JsonObject, JsonValue

LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
LONGEST_COMPATIBILITY = 500
LONGEST_FRONTMATTER = 64 * 1024
_FENCED = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)(?:\r?\n)?^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_RESERVED = "io.modelcontextprotocol/"


def split(text: str) -> tuple[JsonObject, str]:
    """The frontmatter as it stands, and the text after it.

    Raises:
        BadInput: there is none, or it is no YAML mapping.
    """
    fenced = _FENCED.match(text)
    if fenced is None:
        raise BadInput(
            "SKILL.md begins with no frontmatter.",
            where="SKILL.md",
            suggestion="Begin it with '---', the fields name and description as YAML, and '---'.",
        )
    return _parsed(fenced.group(1)), text[fenced.end() :]


def check(frontmatter: JsonObject, *, folder: str | None = None) -> None:
    """
    Raises:
        BadInput: a field that the standard wants is missing, or one is not as it wants it.
    """
    name = frontmatter.get("name")
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise _wrong(
            "name",
            f"must be 1 to {LONGEST_NAME} of a-z, 0-9 and single hyphens, such as 'qualify-lead'; it is {name!r}",
        )
    if folder is not None and folder != name:
        raise _wrong("name", f"is {name!r}, but the folder is called {folder!r}; they must be the same")
    description = frontmatter.get("description")
    if not isinstance(description, str) or not description.strip() or len(description) > LONGEST_DESCRIPTION:
        raise _wrong("description", f"must be a text of 1 to {LONGEST_DESCRIPTION} characters")
    compatibility = frontmatter.get("compatibility")
    if compatibility is not None and (
        not isinstance(compatibility, str) or not 0 < len(compatibility) <= LONGEST_COMPATIBILITY
    ):
        raise _wrong("compatibility", f"must be a text of 1 to {LONGEST_COMPATIBILITY} characters")
    for field in ("license", "allowed-tools"):
        if frontmatter.get(field) is not None and not isinstance(frontmatter[field], str):
            raise _wrong(field, "must be a text")
    metadata = frontmatter.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise _wrong("metadata", "must be a mapping")
    for key in metadata or {}:
        if key.startswith(_RESERVED):
            raise _wrong(f"metadata.{key}", f"uses the prefix {_RESERVED!r}, which is reserved")


def _parsed(text: str) -> JsonObject:
    import yaml

    if len(text) > LONGEST_FRONTMATTER:
        raise BadInput(f"The frontmatter is longer than {LONGEST_FRONTMATTER} characters.", where="SKILL.md")
    try:
        events = cast("Iterable[object]", yaml.parse(text, Loader=yaml.SafeLoader))  # pyright: ignore[reportUnknownMemberType]
        if any(isinstance(event, yaml.events.AliasEvent) for event in events):
            raise BadInput("The frontmatter uses YAML aliases, which are not read.", where="SKILL.md")
        found: object = yaml.load(text, Loader=_loader())  # noqa: S506 - a SafeLoader, with dates left as text
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 2}" if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error)
        raise BadInput(f"The frontmatter is no YAML: {problem}.", where=f"SKILL.md{line}") from error
    except RecursionError as error:
        raise BadInput("The frontmatter is nested too deeply.", where="SKILL.md") from error
    except (ValueError, KeyError, AttributeError) as error:
        # The YAML library says this way that a value does not fit its tag, such as `!!bool perhaps` or `0x_`.
        raise BadInput(
            "The frontmatter has a number or tagged value that cannot be read.",
            where="SKILL.md",
            suggestion="Write it as a text, in quotes.",
        ) from error
    if not isinstance(found, dict):
        raise BadInput("The frontmatter is no mapping.", where="SKILL.md", suggestion="Write 'name: ...' in it.")
    return _as_json({str(key): _plain(value) for key, value in cast("dict[object, object]", found).items()})


def _as_json(frontmatter: JsonObject) -> JsonObject:
    """As every client will get it. Integers beyond 64 bits and halves of characters have no JSON."""
    try:
        return cast("JsonObject", orjson.loads(orjson.dumps(frontmatter)))
    except orjson.JSONEncodeError as error:
        raise BadInput(
            f"The frontmatter has a value that cannot be sent as JSON: {error}.",
            where="SKILL.md",
            suggestion="Write large numbers as texts, in quotes.",
        ) from error


def _plain(value: object) -> JsonValue:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in cast("dict[object, object]", value).items()}
    if isinstance(value, list):
        return [_plain(one) for one in cast("list[object]", value)]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _loader() -> type:
    import yaml

    class Loader(yaml.SafeLoader):
        """Dates stay texts, as JSON has them."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return Loader


def _wrong(field: str, why: str) -> BadInput:
    return BadInput(f"{field} {why}.", where=f"SKILL.md: {field}")
