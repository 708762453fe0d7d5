"""Single entries as JSON bodies: `POST /v1/providers` and `POST /v1/servers` take what the manifest takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, cast

import msgspec
from msgspec import inspect

from toolyard.core.errors import BadInput
from toolyard.core.json import JsonObject
from toolyard.manifest.checking import Checker
from toolyard.manifest.kinds import configs_of, find_kind, unknown_kinds
from toolyard.manifest.models import ProviderConfig, ServerConfig
from toolyard.manifest.problems import Problems, field_name
from toolyard.manifest.rules import Entry, check_provider
from toolyard.manifest.secret import Secret
from toolyard.manifest.texts import Reading

T = TypeVar("T")
_MOST_TOLD = 10


def parse_provider(body: Mapping[str, object]) -> ProviderConfig:
    """
    Raises:
        BadInput: naming the first wrong field in `where`; the message tells of every mistake.
    """
    problems = Problems()
    check_provider(cast("Entry", body), problems)
    kinds = [find_kind(name) for name in unknown_kinds([body])]
    return _parsed(body, configs_of(kinds), problems)


def parse_server(body: Mapping[str, object]) -> ServerConfig:
    """
    Raises:
        BadInput: naming the first wrong field in `where`; the message tells of every mistake.
    """
    return _parsed(body, ServerConfig, Problems())


def dump_provider(config: ProviderConfig, *, reveal: bool) -> JsonObject:
    """The entry that `parse_provider` takes back; with `reveal` false, secrets are `***`, for showing."""
    return _dumped(config, reveal=reveal)


def dump_server(config: ServerConfig) -> JsonObject:
    """The entry that `parse_server` takes back."""
    return _dumped(config, reveal=False)


def _dumped(config: ProviderConfig | ServerConfig, *, reveal: bool) -> JsonObject:
    def encode(value: object) -> str:
        assert isinstance(value, Secret)  # noqa: S101  (the models hold no other type of ours)
        return value.reveal() if reveal else "***"

    return cast("JsonObject", msgspec.json.decode(msgspec.json.encode(config, enc_hook=encode)))


def _parsed(body: Mapping[str, object], wanted: object, problems: Problems) -> T:  # pyright: ignore[reportInvalidTypeVarUse]
    read = Checker(problems, Reading()).check(dict(body), inspect.type_info(wanted))
    if problems:
        told = [f"{field_name(p.place)}: {p.message}" for p in problems.found[:_MOST_TOLD]]
        first = problems.found[0]
        suggestion = first.suggestion if len(problems.found) == 1 else None
        raise BadInput(" ".join(told), where=field_name(first.place), suggestion=suggestion)
    return cast("T", msgspec.convert(read, wanted))  # type: ignore[call-overload]
