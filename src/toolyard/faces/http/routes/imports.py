"""An OpenAPI document becomes tools: by URL, inline, or as an upload."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import Field, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from toolyard.core.errors import BadInput, NotFound
from toolyard.core.json import dumps
from toolyard.core.principal import Scope
from toolyard.core.tool import Tool
from toolyard.faces.http.access import Yard, needs
from toolyard.faces.http.models import ImportBody, ImportedTool, ImportOut, ImportReportOut
from toolyard.providers.openapi import ImportedApi

router = APIRouter(tags=["Import"])
DEFAULT_AGENT = "default"
_MULTIPART = "multipart/form-data"
_UPLOAD_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["document"],
    "additionalProperties": False,
    "properties": {
        "document": {"type": "string", "format": "binary", "description": "The document: JSON or YAML."},
        "cluster": {"type": "string", "minLength": 1, "maxLength": 200},
        "provider_id": {"type": "string", "maxLength": 64},
        "base_url": {"type": "string", "maxLength": 4000},
    },
}
_ACCESS = needs(Scope.MANAGE)
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/ImportBody"}},
            _MULTIPART: {"schema": _UPLOAD_SCHEMA},
        },
    }
}


@router.post(
    "/agents/{agent_id}/tools/import-openapi",
    dependencies=_ACCESS["dependencies"],
    openapi_extra={**_ACCESS["openapi_extra"], **_BODY},
    status_code=201,
)
async def import_openapi(
    yard: Yard, request: Request, response: Response, agent_id: Annotated[str, Field(max_length=64)]
) -> ImportOut:
    """Turn every operation of an OpenAPI document into a tool, in a cluster that the agent can use.

    Importing the same cluster again replaces it. One bad operation costs no other: the report says what was repaired
    or dropped, and where.
    """
    if agent_id != DEFAULT_AGENT:
        raise NotFound(f"There is no agent {agent_id!r}.", suggestion=f"Use the agent '{DEFAULT_AGENT}'.")
    body, document = await _read(request)
    api = await yard.import_openapi(
        url=body.url,
        document=document,
        cluster=body.cluster,
        provider_id=body.provider_id,
        base_url=body.base_url,
        headers=body.headers,
    )
    response.headers["Location"] = f"/v1/providers/{api.namespace}"
    return _import_out(api)


async def _read(request: Request) -> tuple[ImportBody, bytes | None]:
    """
    Raises:
        RequestValidationError, BadInput: with a pointer to the field.
        HTTPException: 415 for a body of another kind.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == _MULTIPART:
        return await _read_upload(request)
    if kind != "application/json" and not kind.endswith("+json"):
        raise HTTPException(415, "Send application/json or multipart/form-data.")
    body = _checked(await _json(request))
    if (body.url is None) == (body.document is None):
        raise BadInput("Give either 'url' or 'document'.", where="/url")
    if isinstance(body.document, str):
        return body, body.document.encode()
    return body, None if body.document is None else dumps(body.document)


async def _read_upload(request: Request) -> tuple[ImportBody, bytes | None]:
    async with request.form(max_files=1, max_fields=10) as form:
        fields = dict(form)
        upload = fields.pop("document", None)
        if not isinstance(upload, UploadFile):
            raise BadInput("The upload holds no file.", where="/document", suggestion="Send it as the part 'document'.")
        stray = next((name for name, value in fields.items() if isinstance(value, UploadFile)), None)
        if stray is not None or "url" in fields:
            raise BadInput("An upload takes one file and no url.", where=f"/{stray or 'url'}")
        return _checked(fields), await upload.read()


async def _json(request: Request) -> Any:
    try:
        return await request.json()
    except (ValueError, RecursionError) as error:
        raise BadInput("The body is no JSON.", where="", suggestion=str(error)[:200]) from error


def _checked(fields: Any) -> ImportBody:
    try:
        return ImportBody.model_validate(fields)
    except ValidationError as error:
        found = [{**item, "loc": ("body", *item["loc"])} for item in error.errors(include_url=False)]
        raise RequestValidationError(found) from error


def _import_out(api: ImportedApi) -> ImportOut:
    return ImportOut(
        cluster=api.cluster,
        provider=api.namespace,
        tools=[_imported_tool(tool) for tool in api.tools],
        report=ImportReportOut.model_validate(api.report.to_wire()),
    )


def _imported_tool(tool: Tool) -> ImportedTool:
    return ImportedTool(
        id=tool.id,
        name=tool.name,
        description=tool.description,
        method=tool.origin.get("method"),
        path=tool.origin.get("path"),
    )
