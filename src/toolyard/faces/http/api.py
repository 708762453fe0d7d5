"""The control plane: FastAPI under `/v1`. Imported with its first request, never on the way of a hot call."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

import toolyard
from toolyard.app import App
from toolyard.core.errors import ToolyardError
from toolyard.core.json import dumps
from toolyard.faces.http import models
from toolyard.faces.http.problems import PROBLEM, problem, problem_of
from toolyard.faces.http.reference import reference_page
from toolyard.faces.http.routes import (
    approvals,
    calls,
    client_tools,
    clusters,
    events,
    gateway,
    imports,
    keys,
    logins,
    metrics,
    providers,
    resolve,
    servers,
    sessions,
    skills,
    tools,
)
from toolyard.faces.http.validation import problem_of_errors

_ROUTERS = (
    client_tools,  # before the tools, whose ids may hold slashes
    tools,
    resolve,
    clusters,
    imports,
    providers,
    gateway,
    servers,
    sessions,
    skills,
    calls,
    approvals,
    metrics,
    events,
    keys,
    logins,
)
_INTRODUCTION = """Everything the console does, for programs.

Send an API key as `Authorization: Bearer ty_...`; each operation names the scopes of which it needs one. Lists answer
`{items, next_cursor}`, newest first where they have a time. Writes take an `Idempotency-Key`: the same request with
the same key does its work once and gets the first answer again. Errors are RFC 9457 problem details with `error`,
`code` and `suggestion`. `/api` is another name of `/v1`."""


def control_plane(app: App) -> ASGIApp:
    """The FastAPI application. It expects `scope["state"]["caller"]`, which the edge sets."""
    api = FastAPI(
        title="Toolyard",
        version=toolyard.__version__,
        description=_INTRODUCTION,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    api.state.toolyard = app
    for module in _ROUTERS:
        api.include_router(module.router, prefix="/v1")
    api.openapi = lambda: _document(api)  # type: ignore[method-assign]
    api.add_route("/openapi.json", _openapi_json)
    api.add_route("/v1/openapi.json", _openapi_json)
    api.add_route("/docs", _docs)
    api.add_exception_handler(ToolyardError, _on_error)
    api.add_exception_handler(RequestValidationError, _on_invalid)
    api.add_exception_handler(HTTPException, _on_http)
    api.add_exception_handler(Exception, _on_bug)
    return api


async def _openapi_json(request: Request) -> Response:
    document = await asyncio.to_thread(request.app.openapi)
    return Response(dumps(document), media_type="application/json")


async def _docs(request: Request) -> Response:
    return reference_page(await asyncio.to_thread(request.app.openapi))


def _document(api: FastAPI) -> dict[str, Any]:
    """FastAPI's document with what it cannot know: our errors, and how a key is sent."""
    if api.openapi_schema is None:
        document = get_openapi(
            title=api.title,
            version=api.version,
            description=api.description,
            routes=api.routes,
            openapi_version="3.1.0",
        )
        schemas = document["components"]["schemas"]
        for model in (models.Problem, models.FieldProblem, models.ImportBody):
            schemas[model.__name__] = _schema(model)
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        for path in document["paths"].values():
            for operation in path.values():
                _describe_errors(operation)
        api.openapi_schema = document
    return api.openapi_schema


def _schema(model: type[models.BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    return schema


def _describe_errors(operation: dict[str, Any]) -> None:
    problem_content = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    operation["responses"].pop("422", None)
    operation["responses"]["4XX"] = {"description": "The request's fault.", "content": problem_content}
    operation["responses"]["5XX"] = {"description": "Ours, or a provider's.", "content": problem_content}
    scopes = " or ".join(f"`{scope}`" for scope in operation.get("x-scopes", ()))
    operation["description"] = f"{operation.get('description', '')}\n\nNeeds the scope {scopes}.".strip()


async def _on_error(request: Request, error: Exception) -> Response:
    return problem_of(cast("ToolyardError", error))


async def _on_invalid(request: Request, error: Exception) -> Response:
    return problem_of_errors(cast("RequestValidationError", error).errors())


async def _on_http(request: Request, error: Exception) -> Response:
    """What the framework refuses: an unknown path, a wrong method, a body it cannot read."""
    refused = cast("HTTPException", error)
    code = {404: "not_found", 405: "method_not_allowed", 415: "unsupported_media_type"}.get(
        refused.status_code, "invalid"
    )
    message = {
        404: f"There is nothing at {request.url.path[:200]!r}.",
        405: f"{request.url.path[:200]!r} does not take {request.method}.",
        400: _why_unreadable(refused.__cause__),
    }.get(refused.status_code, str(refused.detail))
    return problem(
        refused.status_code, code, message, suggestion="See /docs for what there is.", headers=refused.headers
    )


def _why_unreadable(cause: BaseException | None) -> str:
    match cause:
        case UnicodeDecodeError():
            return f"The body is not UTF-8: byte {cause.start} cannot be read."
        case RecursionError():
            return "The body is nested too deeply."
        case _:
            return "The body cannot be read."


async def _on_bug(request: Request, error: Exception) -> Response:
    """The framework raises the error again once this is sent, and the edge logs it."""
    return problem(500, "internal", "Something went wrong here.", suggestion="The server's log says what.")
