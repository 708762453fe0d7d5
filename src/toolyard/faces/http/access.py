"""What every route needs: the application, the caller, and the scope it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, cast

from fastapi import Depends, Request

from toolyard.app import App
from toolyard.core.principal import Principal, Scope
from toolyard.identity.gate import Caller


async def _app(request: Request) -> App:
    return cast("App", request.app.state.toolyard)


async def _principal(request: Request) -> Principal:
    return cast("Caller", request.state.caller).principal


Yard = Annotated[App, Depends(_app)]
Who = Annotated[Principal, Depends(_principal)]


def needs(*scopes: Scope) -> Mapping[str, Any]:
    """Arguments of a route that asks for one of `scopes`, and says so in the API's documentation.

    The first is the one that is named to a caller who has none of them.
    """

    async def check(principal: Who) -> None:
        if not any(principal.may(scope) for scope in scopes):
            principal.require(scopes[0])

    return {
        "dependencies": [Depends(check)],
        "openapi_extra": {"security": [{"key": []}], "x-scopes": [str(scope) for scope in scopes]},
    }
