"""Errors on the wire: RFC 9457 problem details, with the `{error, code, suggestion}` that all our faces speak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.responses import Response

from toolyard.core.call import CallFailure
from toolyard.core.errors import (
    BadInput,
    CallError,
    Conflict,
    DocumentError,
    ErrorCode,
    Forbidden,
    NotFound,
    ProviderError,
    StoreUnavailable,
    TooLarge,
    ToolyardError,
    Unauthenticated,
)
from toolyard.core.json import JsonObject, JsonValue, dumps

PROBLEM = "application/problem+json"
_BY_ERROR: Sequence[tuple[type[ToolyardError], int, str]] = (
    (BadInput, 422, "invalid"),
    (Unauthenticated, 401, "unauthenticated"),
    (Forbidden, 403, "forbidden"),
    (NotFound, 404, "not_found"),
    (Conflict, 409, "conflict"),
    (TooLarge, 413, "too_large"),
    (StoreUnavailable, 503, "unavailable"),
    (DocumentError, 422, "invalid"),
    (ProviderError, 502, "upstream"),
)
_BY_CALL_CODE: Mapping[ErrorCode, int] = {
    ErrorCode.INVALID_ARGUMENTS: 422,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.DENIED: 403,
    ErrorCode.TOO_LARGE: 413,
}
_TITLES: Mapping[int, str] = {
    400: "Bad request",
    401: "Not authenticated",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    409: "Conflict",
    413: "Too large",
    415: "Unsupported media type",
    422: "Invalid input",
    429: "Too many requests",
    500: "Internal error",
    502: "A provider failed",
    503: "Unavailable",
}


def problem(
    status: int,
    code: str,
    message: str,
    *,
    suggestion: str | None = None,
    errors: Sequence[JsonObject] = (),
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, JsonValue] | None = None,
) -> Response:
    """`errors` are `{pointer, message, suggestion?}`, one for each wrong field."""
    body: dict[str, JsonValue] = {
        "type": "about:blank",
        "title": _TITLES.get(status, "Error"),
        "status": status,
        "detail": f"{message} {suggestion}" if suggestion else message,
        "error": message,
        "code": code,
        "suggestion": suggestion,
    }
    if errors:
        body["errors"] = list(errors)
    body.update(more or {})
    return Response(dumps(body), status_code=status, headers=headers, media_type=PROBLEM)


def problem_of(error: ToolyardError) -> Response:
    """The answer to anything that we raise on purpose."""
    if isinstance(error, CallError):
        return problem_of_call(CallFailure.of(error))
    status, code = next(((s, c) for kind, s, c in _BY_ERROR if isinstance(error, kind)), (500, "internal"))
    errors = [_field_error(error)] if isinstance(error, BadInput) and error.where else []
    return problem(
        status, code, error.message, suggestion=error.suggestion, errors=errors, headers=_headers_for(status)
    )


def problem_of_call(failure: CallFailure, call_id: str | None = None) -> Response:
    """A call that never reached its tool."""
    return problem(
        _BY_CALL_CODE.get(failure.code, 502),
        failure.code.value,
        failure.message,
        suggestion=failure.suggestion,
        more={"call_id": call_id} if call_id else None,
    )


def never_reached_its_tool(code: ErrorCode) -> bool:
    """Whether a failed call is the request's own fault, told by an HTTP status; any other is a call that ran."""
    return code in (ErrorCode.INVALID_ARGUMENTS, ErrorCode.NOT_FOUND, ErrorCode.DENIED)


def pointer(parts: Sequence[str | int]) -> str:
    """`("headers", "X-Key")` -> `/headers/X-Key`."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def _field_error(error: BadInput) -> JsonObject:
    found: dict[str, JsonValue] = {"pointer": _as_pointer(error.where or ""), "message": error.message}
    if error.suggestion:
        found["suggestion"] = error.suggestion
    return found


def _as_pointer(where: str) -> str:
    """Rooms below name a field as people write it (`tools[0].url`); a place outside the body keeps its word."""
    if where.startswith("/") or ":" in where:
        return where
    if where == "(top level)":
        return ""
    return "/" + where.replace("[", ".").replace("]", "").replace(".", "/")


def _headers_for(status: int) -> dict[str, str]:
    if status == 401:
        return {"WWW-Authenticate": 'Bearer realm="toolyard"'}
    return {"Retry-After": "1"} if status == 503 else {}
