"""The pet shop's HTTP API (its contract is `openapi.json` beside this file)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import cast

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolyard.demo.petshop import DOCUMENT
from toolyard.demo.petshop.picture import picture_of
from toolyard.demo.petshop.stock import KINDS, STATUSES, JsonObject, Stock, Unfit

LONGEST_VISIT = 30.0


class Refusal(Exception):
    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def build() -> Starlette:
    """A shop with its own stock."""
    shop = Starlette(
        routes=[
            Route("/openapi.json", _document),
            Route("/pets", _list_pets, methods=["GET"]),
            Route("/pets", _create_pet, methods=["POST"]),
            Route("/pets/{number:int}", _get_pet, methods=["GET"]),
            Route("/pets/{number:int}", _update_pet, methods=["PATCH"]),
            Route("/pets/{number:int}", _delete_pet, methods=["DELETE"]),
            Route("/pets/{number:int}/picture", _picture),
            Route("/vet/visits", _visit_the_vet, methods=["POST"]),
            Route("/till", _open_till),
        ],
        exception_handlers={Refusal: _refused},
    )
    shop.state.stock = Stock()
    return shop


async def _document(request: Request) -> Response:
    return Response(DOCUMENT.read_bytes(), media_type="application/json")


async def _list_pets(request: Request) -> Response:
    query = request.query_params
    limit = int(_number(request, "limit", 20, 1, 100))
    offset = int(_number(request, "offset", 0, 0, 1_000_000))
    found = _stock(request).find(
        kind=_one_of(request, "kind", KINDS),
        status=_one_of(request, "status", STATUSES),
        tags=query.getlist("tags"),
        max_price=_number(request, "max_price", 0, 0, 100_000) if "max_price" in query else None,
    )
    more = offset + limit < len(found)
    return _json(
        {
            "pets": found[offset : offset + limit],
            "total": len(found),
            "next_offset": offset + limit if more else None,
        }
    )


async def _create_pet(request: Request) -> Response:
    try:
        pet = _stock(request).add(await _body(request))
    except Unfit as error:
        raise Refusal(422, str(error)) from None
    return _json(pet, 201, {"Location": f"/pets/{pet['id']}"})


async def _get_pet(request: Request) -> Response:
    return _json(_pet(request))


async def _update_pet(request: Request) -> Response:
    number = cast("int", _pet(request)["id"])
    try:
        return _json(_stock(request).change(number, await _body(request)))
    except Unfit as error:
        raise Refusal(422, str(error)) from None


async def _delete_pet(request: Request) -> Response:
    _stock(request).remove(cast("int", _pet(request)["id"]))
    return Response(status_code=204)


async def _picture(request: Request) -> Response:
    return Response(picture_of(cast("int", _pet(request)["id"])), media_type="image/png")


async def _visit_the_vet(request: Request) -> Response:
    """Slow on purpose: takes as many seconds as it is told to, or until nobody waits for it any more."""
    seconds = _number(request, "seconds", 3, 0, LONGEST_VISIT)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await _caller_left(request)
            return _json({"verdict": "left early"})
    return _json({"verdict": "perfectly healthy", "waited_seconds": seconds})


async def _caller_left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _open_till(request: Request) -> Response:
    """Fails on purpose."""
    raise Refusal(503, "The till is jammed. It always is; this operation shows how a failure looks.")


def _stock(request: Request) -> Stock:
    return cast("Stock", request.app.state.stock)


def _pet(request: Request) -> JsonObject:
    number = cast("int", request.path_params["number"])
    pet = _stock(request).get(number)
    if pet is None:
        raise Refusal(404, f"There is no pet number {number}.")
    return pet


async def _body(request: Request) -> JsonObject:
    try:
        body: object = orjson.loads(await request.body())
    except orjson.JSONDecodeError as error:
        raise Refusal(400, f"The body is no JSON: {error}.") from None
    if not isinstance(body, dict):
        raise Refusal(422, "The body must be an object.")
    return cast("JsonObject", body)


def _number(request: Request, name: str, default: float, low: float, high: float) -> float:
    text = request.query_params.get(name)
    try:
        value = default if text is None else float(text)
    except ValueError:
        raise Refusal(422, f"{name} must be a number, got {text!r}.") from None
    if not low <= value <= high:
        raise Refusal(422, f"{name} must be from {low:g} to {high:g}, got {text!r}.")
    return value


def _one_of(request: Request, name: str, words: tuple[str, ...]) -> str | None:
    word = request.query_params.get(name)
    if word is not None and word not in words:
        raise Refusal(422, f"{name} must be one of {', '.join(words)}, got {word!r}.")
    return word


def _json(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(orjson.dumps(value), status, headers, "application/json")


async def _refused(request: Request, error: Exception) -> Response:
    refusal = cast("Refusal", error)
    body = {"title": "The shop says no", "status": refusal.status, "detail": refusal.detail}
    return Response(orjson.dumps(body), refusal.status, media_type="application/problem+json")
