"""Wrong input of the control plane: a pointer to each field, and the nearest known name for an unknown one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError
from starlette.responses import Response

from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.names import did_you_mean
from toolyard.faces.http.problems import pointer, problem

UNKNOWN_FIELD = "unknown_field"
_MOST_TOLD = 20
_PLACES = frozenset({"body", "query", "path", "header"})


class Strict(BaseModel):
    """What callers send. A field that is not known is an error that names the nearest one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_fields(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            known = {field.alias or name for name, field in cls.model_fields.items()}
            for name in cast("Mapping[str, object]", data):
                if name not in known:
                    suggestion = did_you_mean(name, known) or f"Known are: {', '.join(sorted(known)) or 'none'}."
                    raise PydanticCustomError(
                        UNKNOWN_FIELD, "There is no such field.", {"field": name, "suggestion": suggestion}
                    )
        return cast("object", data)


def problem_of_errors(errors: Sequence[Mapping[str, Any]]) -> Response:
    """422 for pydantic's list of errors."""
    found = [_field_error(error) for error in errors[:_MOST_TOLD]]
    first = found[0]
    suggestion = first.get("suggestion") if len(found) == 1 else None
    return problem(
        422,
        "invalid",
        "; ".join(
            f"{item['pointer']}: {item['message']}" if item["pointer"] else str(item["message"]) for item in found
        ),
        suggestion=str(suggestion) if suggestion else None,
        errors=found,
    )


def _field_error(error: Mapping[str, Any]) -> JsonObject:
    place, *rest = cast("tuple[str | int, ...]", tuple(error["loc"])) or ("body",)
    context = cast("Mapping[str, Any]", error.get("ctx") or {})
    if error["type"] == "json_invalid":
        return {
            "pointer": "",
            "message": f"The body is no JSON: {context.get('error', error['msg'])}, at character {rest[0]}.",
        }
    if error["type"] == UNKNOWN_FIELD:
        rest.append(str(context["field"]))
    if place not in _PLACES:
        rest.insert(0, place)
    told: dict[str, JsonValue] = {
        "pointer": pointer(rest) if place == "body" or place not in _PLACES else f"{place}:{'.'.join(map(str, rest))}",
        "message": str(error["msg"]),
    }
    if "suggestion" in context:
        told["suggestion"] = str(context["suggestion"])
    return told
