"""How marked texts are read: variables resolved, addresses checked, paths made absolute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from toolyard.manifest.models import Form
from toolyard.manifest.variables import REFERENCE, Unresolved, has_reference, resolve

_MAY_REFER = frozenset({Form.HOSTNAME, Form.URL, Form.URL_OR_FILE, Form.KEY, Form.SECRET})


@dataclass(frozen=True, slots=True)
class Reading:
    """Where the texts come from. A request body has no variables and no folder (docs/decisions/071)."""

    env: Mapping[str, str] | None = None
    folder: Path | None = None


class Misread(Exception):
    """What is wrong with a text, without showing a secret."""

    def __init__(self, message: str, suggestion: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion


def read_text(text: str, form: Form | None, reading: Reading) -> str:
    """The value that `text` stands for.

    Raises:
        Misread: an unset variable, a variable where none belongs, a literal key, an address that is none.
    """
    if form is Form.VERBATIM:
        return text
    if form is Form.KEY and reading.env is not None and not REFERENCE.fullmatch(text):
        raise Misread(
            "expected a ${VAR} reference; a key itself does not belong in a file.",
            "Put the key into the environment and write its name here, such as ${CRM_MCP_KEY}.",
        )
    value = _resolved(text, form, reading)
    check = _CHECKS.get(form) if form is not None else None
    if check is None:
        return value
    return check(value, text, reading)


def _resolved(text: str, form: Form | None, reading: Reading) -> str:
    if not has_reference(text):
        return text
    if reading.env is None:
        raise Misread("${VAR} is read only in a manifest file.", "Send the value itself.")
    if form not in _MAY_REFER:
        raise Misread("${VAR} may stand only where a secret or an address belongs.", "Write the value itself.")
    try:
        return resolve(text, reading.env)
    except Unresolved as error:
        raise Misread(error.message, error.suggestion) from None


def _hostname(value: str, text: str, reading: Reading) -> str:
    example = "Write scheme and host only, such as https://crm.example.com, and the port in 'port'."
    host = _split(value, text)
    if "@" in host.netloc:
        raise Misread("a hostname must hold no user name or password.", example)
    if host.path.strip("/") or host.query or host.fragment:
        raise Misread(f"expected scheme and host only, got a path or query{_shown(text)}.", example)
    if ":" in host.netloc.rpartition("]")[2]:
        raise Misread(f"expected scheme and host only, got a port{_shown(text)}.", example)
    return value.rstrip("/")


def _url(value: str, text: str, reading: Reading) -> str:
    if "@" in _split(value, text).netloc:
        raise Misread("an address must hold no user name or password.", "Send credentials as a header instead.")
    return value


def _url_or_file(value: str, text: str, reading: Reading) -> str:
    if "://" in value:
        return _url(value, text, reading)
    return _path(value, text, reading)


def _path(value: str, text: str, reading: Reading) -> str:
    if "\x00" in value or not value:
        raise Misread(f"expected a path{_shown(text)}.")
    if reading.folder is not None:
        return str((reading.folder / value).resolve())
    if not Path(value).is_absolute():
        raise Misread(f"expected an absolute path or an http(s) address{_shown(text)}.")
    return value


def _split(value: str, text: str) -> SplitResult:
    try:
        parts = urlsplit(value)
        named, _ = parts.hostname, parts.port
    except ValueError as error:
        raise Misread(f"this is no address: {str(error).lower()}{_shown(text)}.") from None
    if parts.scheme not in ("http", "https") or not named:
        raise Misread(f"expected http://... or https://...{_shown(text)}.")
    if any(character.isspace() or not character.isprintable() for character in value):
        raise Misread(f"an address holds no blanks or control characters{_shown(text)}.")
    return parts


def _shown(text: str) -> str:
    """The text as it was written, unless it may hold a password. Resolved values are never shown."""
    return "" if "@" in text else f": {text!r}" if len(text) <= 100 else f": {text[:97]!r}..."


_CHECKS: Mapping[Form, Callable[[str, str, Reading], str]] = {
    Form.HOSTNAME: _hostname,
    Form.URL: _url,
    Form.URL_OR_FILE: _url_or_file,
    Form.FOLDER: _path,
}
