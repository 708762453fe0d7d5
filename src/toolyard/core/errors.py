"""The one tree of errors.

```
ToolyardError                  message, suggestion
├── BadInput                   what was given cannot be accepted                     HTTP 422
│   └── ManifestError          with file, line and field
├── Unauthenticated            no key, or a bad one                                  HTTP 401
├── Forbidden                  a good key without the scope                          HTTP 403
├── NotFound                   nothing there, or nothing the caller may know of      HTTP 404
├── Conflict                   somebody was first, or the same key said otherwise    HTTP 409
├── TooLarge                   more bytes than we take                               HTTP 413
├── CallError                  why one call ended in ERROR: carries an `ErrorCode`
│   ├── ProtocolError          the tool answered with a JSON-RPC error in place of a result
│   └── Unreachable            the provider failed, not its tool
├── ProviderError              a provider cannot be started, listed or reached
│   └── DocumentError          its document cannot be read at all
├── EgressError                an outbound request failed
│   └── AddressRefused         the address guard said no
└── StoreError
    ├── StoreUnavailable       disk full, connection lost                             HTTP 503
    │   └── StoreInUse         a database file that another process holds
    ├── StoreCorrupt
    └── StoreTooNew            written by a newer Toolyard
```
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolyard.core.json import JsonValue


class ErrorCode(StrEnum):
    """Why a call ended in ERROR (ARCHITECTURE section 3)."""

    INVALID_ARGUMENTS = "invalid_arguments"
    NOT_FOUND = "not_found"
    DENIED = "denied"
    REJECTED = "rejected"
    APPROVAL_TIMEOUT = "approval_timeout"
    TIMEOUT = "timeout"
    ABANDONED = "abandoned"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"
    REAUTH_REQUIRED = "reauth_required"
    UPSTREAM = "upstream"
    REPEATED = "repeated"
    TOO_LARGE = "too_large"
    INTERNAL = "internal"


class ToolyardError(Exception):
    """Anything we raise on purpose. `message` says what and where, `suggestion` says what to do."""

    def __init__(self, message: str, *, suggestion: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion

    def __str__(self) -> str:
        return f"{self.message} {self.suggestion}" if self.suggestion else self.message


class BadInput(ToolyardError):
    """Input that cannot be accepted. `where` is a field, a pointer or a parameter name."""

    def __init__(self, message: str, *, where: str | None = None, suggestion: str | None = None) -> None:
        super().__init__(message, suggestion=suggestion)
        self.where = where


class ManifestError(BadInput):
    """A mistake in a manifest: `file:line: field: message`."""

    def __init__(self, message: str, *, file: str, line: int | None, field: str, suggestion: str | None = None) -> None:
        super().__init__(message, where=field, suggestion=suggestion)
        self.file = file
        self.line = line
        self.field = field

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line is not None else self.file
        return f"{place}: {self.field}: {super().__str__()}"


class Unauthenticated(ToolyardError):
    pass


class Forbidden(ToolyardError):
    pass


class NotFound(ToolyardError):
    pass


class Conflict(ToolyardError):
    pass


class TooLarge(ToolyardError):
    pass


class CallError(ToolyardError):
    """Ends a call in ERROR. Steps and providers raise it; the message may be shown to a model."""

    def __init__(self, code: ErrorCode, message: str, *, suggestion: str | None = None) -> None:
        super().__init__(message, suggestion=suggestion)
        self.code = code


class Unreachable(CallError):
    """The provider itself failed (refused, lost, no answer), not its tool. The supervisor's breaker counts these."""

    def __init__(self, message: str, *, suggestion: str | None = None) -> None:
        super().__init__(ErrorCode.UPSTREAM, message, suggestion=suggestion)


class ProtocolError(CallError):
    """A tool answered with a JSON-RPC error: `rpc_code` and `data` go on record and reach MCP clients as they came."""

    def __init__(self, rpc_code: int, message: str, data: JsonValue = None, *, suggestion: str | None = None) -> None:
        super().__init__(ErrorCode.UPSTREAM, message, suggestion=suggestion)
        self.rpc_code = rpc_code
        self.data = data


class ProviderError(ToolyardError):
    """A provider cannot be started, listed or reached."""


class DocumentError(ProviderError):
    """An API document that cannot be read at all (one bad operation is never this)."""


class EgressError(ToolyardError):
    """An outbound request failed. `sent` is true when the request may have reached the other side."""

    def __init__(self, message: str, *, suggestion: str | None = None, sent: bool = False) -> None:
        super().__init__(message, suggestion=suggestion)
        self.sent = sent


class AddressRefused(EgressError):
    pass


class StoreError(ToolyardError):
    pass


class StoreUnavailable(StoreError):
    pass


class StoreInUse(StoreUnavailable):
    """Another process holds this database file."""


class StoreCorrupt(StoreError):
    pass


class StoreTooNew(StoreError):
    pass
