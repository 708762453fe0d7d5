"""How an upstream fails, before it is told to a caller."""

from __future__ import annotations

from toolyard.core.errors import ErrorCode, ProviderError
from toolyard.core.json import JsonObject, JsonValue

LONGEST_MESSAGE = 500


class RpcFault(ProviderError):
    """The upstream answered with a JSON-RPC error, or refused with an HTTP status below 500."""

    def __init__(self, message: str, *, code: int = 0, data: JsonValue = None, status: int | None = None) -> None:
        super().__init__(message if len(message) <= LONGEST_MESSAGE else f"{message[: LONGEST_MESSAGE - 3]}...")
        self.code = code
        self.data = data
        self.status = status

    @staticmethod
    def of(error: JsonValue, status: int | None = None) -> RpcFault:
        """From the `error` member of an answer, which may be anything."""
        if not isinstance(error, dict):
            return RpcFault("The MCP server answered with an error that says nothing.", status=status)
        fields: JsonObject = error
        code, message = fields.get("code"), fields.get("message")
        return RpcFault(
            message if isinstance(message, str) and message else "The MCP server gave no reason.",
            code=code if isinstance(code, int) else 0,
            data=fields.get("data"),
            status=status,
        )


class LinkLost(ProviderError):
    """No answer, or none that can be used. `sent` is true when the upstream may have acted on the request."""

    def __init__(self, message: str, *, sent: bool, suggestion: str | None = None) -> None:
        super().__init__(message, suggestion=suggestion)
        self.sent = sent


class SessionLost(LinkLost):
    """A legacy server no longer knows our session, or is not ready: nothing was done, a new session may help."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=False)


class BadAnswer(ProviderError):
    """The upstream is there, but this answer cannot be used (too large, no JSON-RPC). Not counted against it."""

    def __init__(self, message: str, *, code: ErrorCode = ErrorCode.UPSTREAM, suggestion: str | None = None) -> None:
        super().__init__(message, suggestion=suggestion)
        self.code = code
