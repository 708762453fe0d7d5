"""`@toolyard.resource`, `@toolyard.prompt` and `@toolyard.completion`: what a module offers beside its tools."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from toolyard.core.errors import BadInput
from toolyard.core.json import JsonObject

_MARK = "__toolyard_offer__"
_F = TypeVar("_F", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class PythonResource:
    """A function that gives one resource, or each resource of a template: `{name}` in the URI is its argument."""

    function: Callable[..., Any]
    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    meta: JsonObject | None = None

    @property
    def is_template(self) -> bool:
        return "{" in self.uri


@dataclass(frozen=True, slots=True)
class PythonPrompt:
    """A function that gives a prompt's messages."""

    function: Callable[..., Any]
    name: str
    title: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class PythonCompletion:
    """A function that completes one argument of a prompt or of a resource template."""

    function: Callable[..., Any]
    of: Callable[..., Any]
    argument: str


PythonOffer: TypeAlias = PythonResource | PythonPrompt | PythonCompletion


def offer_of(function: object) -> PythonOffer | None:
    """What a decorated function carries."""
    found = getattr(function, _MARK, None)
    return found if isinstance(found, PythonResource | PythonPrompt | PythonCompletion) else None


def resource(
    uri: str,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
    meta: JsonObject | None = None,
) -> Callable[[_F], _F]:
    """Makes a function, sync or async, a resource: `@resource("notes://today")`.

    A URI with `{names}` makes it a template, and the function takes them as arguments. It returns text, bytes, or what
    becomes JSON. A parameter annotated `toolyard.Context` gets the call, as in a tool. `meta` is MCP's `_meta`.

    Raises:
        BadInput: no URI, or no function.
    """
    scheme, colon, rest = uri.partition(":")
    if not (scheme and colon and rest):
        raise BadInput(f"{uri!r} is no URI.", where="uri", suggestion="Give it a scheme: notes://today.")

    def mark(function: _F) -> _F:
        own = name or _name_of(function, "resource")
        _set(function, PythonResource(function, uri, own, title, description, mime_type, meta))
        return function

    return mark


def prompt(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
) -> Any:
    """Makes a function, sync or async, a prompt; works bare (`@prompt`) and with arguments (`@prompt(...)`).

    Its parameters are the prompt's arguments: MCP sends strings, and they are converted to the hints. It returns one
    user message as text, or a list of messages: texts of the user, or `{role, content}` as in MCP.

    Raises:
        BadInput: no function.
    """

    def mark(marked: _F) -> _F:
        _set(marked, PythonPrompt(marked, name or _name_of(marked, "prompt"), title, description))
        return marked

    return mark if function is None else mark(function)


def completion(of: Callable[..., Any], argument: str) -> Callable[[_F], _F]:
    """Makes a function the completion of an argument: `(value: str) -> list[str]`, or `(value, given)` with the other
    arguments as far as they are known. An argument whose hint is a `Literal` or an enum completes without one.

    Raises:
        BadInput: `of` is neither a prompt nor a resource, or has no such argument.
    """
    if not isinstance(offer_of(of), PythonPrompt | PythonResource):
        raise BadInput(f"{of!r} is neither a prompt nor a resource.", where="of")
    if argument not in inspect.signature(of).parameters:
        raise BadInput(f"{getattr(of, '__name__', of)!r} has no argument {argument!r}.", where="argument")

    def mark(function: _F) -> _F:
        _set(function, PythonCompletion(function, of, argument))
        return function

    return mark


def _name_of(function: Callable[..., Any], what: str) -> str:
    found = getattr(function, "__name__", "")
    if not callable(function) or inspect.isclass(function) or not found or found == "<lambda>":
        raise BadInput(f"@toolyard.{what} takes a function with a name.", where=what, suggestion="Give it `name=`.")
    return found


def _set(function: Callable[..., Any], offer: PythonOffer) -> None:
    setattr(function, _MARK, offer)
