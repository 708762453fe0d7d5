"""Media types: which kind of body each is, and which of several is taken."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from toolyard.providers.openapi.model import BodyKind

_ORDER: tuple[BodyKind, ...] = ("json", "form", "multipart", "any", "text", "ndjson", "bytes")
_JSON = re.compile(r"(application|text|\*)/(json|\*\+json|[a-z0-9.*!#$&^_-]+\+json)|text/x-json", re.IGNORECASE)
_NDJSON = re.compile(r"application/(x-)?(ndjson|jsonl(ines)?|json-seq)", re.IGNORECASE)
_TEXT = re.compile(r"text/.*|application/(xml|yaml|x-yaml|graphql|javascript|sql|.*\+(xml|yaml))", re.IGNORECASE)


def bare(media_type: str) -> str:
    """Without parameters: `application/json; charset=utf-8` -> `application/json`."""
    return media_type.partition(";")[0].strip().lower()


@lru_cache(maxsize=512)
def kind_of(media_type: str) -> BodyKind:
    name = bare(media_type)
    if name == "*/*" or not name:
        return "any"
    if _NDJSON.fullmatch(name):
        return "ndjson"
    if _JSON.fullmatch(name):
        return "json"
    if name == "application/x-www-form-urlencoded":
        return "form"
    if name.startswith("multipart/"):
        return "multipart"
    return "text" if _TEXT.fullmatch(name) else "bytes"


def choose(media_types: Iterable[str]) -> str | None:
    """JSON before `+json` before form, multipart, anything, text and bytes; the first of equals."""
    ranked = sorted(
        (_ORDER.index(kind_of(name)), bare(name) != "application/json", index, name)
        for index, name in enumerate(media_types)
    )
    return ranked[0][3] if ranked else None


def accept_of(media_types: Iterable[str]) -> str:
    """The `Accept` header for what an operation answers with: JSON first, then anything."""
    names = [name for name in dict.fromkeys(media_types) if "/" in name and name.isascii() and name.isprintable()]
    first = [name for name in names if kind_of(name) == "json"]
    others = [name for name in names if name not in first and bare(name) != "*/*"]
    named = [*first, *others][:8]
    return ", ".join([*named, "*/*;q=0.1"]) if named else "*/*"
