"""The pets in the shop, and the rules for what may become one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias, cast

JsonObject: TypeAlias = dict[str, object]

KINDS = ("cat", "dog", "fish", "parrot", "tortoise")
STATUSES = ("available", "reserved", "sold")
_FIELDS = ("name", "kind", "status", "price", "tags", "origin", "home")
_HOMES: Mapping[str, tuple[str, type | tuple[type, ...]]] = {
    "cage": ("width_cm", (int, float)),
    "tank": ("litres", (int, float)),
    "free": ("garden", bool),
}


class Unfit(Exception):
    """A pet that the shop cannot take: which field, and why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class Stock:
    """Pets by number, in memory: each start of the demo begins with the same eight."""

    def __init__(self) -> None:
        self._pets: dict[int, JsonObject] = {}
        self._next = 1
        for pet in _FIRST_PETS:
            self.add(pet)

    def find(
        self, *, kind: str | None, status: str | None, tags: list[str], max_price: float | None
    ) -> list[JsonObject]:
        """Pets that fit all of the given conditions, by number."""
        return [
            pet
            for pet in self._pets.values()
            if (kind is None or pet["kind"] == kind)
            and (status is None or pet["status"] == status)
            and set(tags) <= set(cast("list[str]", pet["tags"]))
            and (max_price is None or cast("float", pet["price"]) <= max_price)
        ]

    def get(self, number: int) -> JsonObject | None:
        return self._pets.get(number)

    def add(self, given: Mapping[str, object]) -> JsonObject:
        """
        Raises:
            Unfit: a field is missing, unknown or wrong.
        """
        for name in ("name", "kind"):
            if name not in given:
                raise Unfit(name, "is missing")
        _check(given)
        pet: JsonObject = {"id": self._next, "status": "available", "price": 0, "tags": [], **given}
        self._pets[self._next] = pet
        self._next += 1
        return pet

    def change(self, number: int, given: Mapping[str, object]) -> JsonObject:
        """
        Raises:
            KeyError: there is no such pet.
            Unfit: a field is unknown or wrong.
        """
        before = self._pets[number]
        _check(given)
        self._pets[number] = {**before, **given}
        return self._pets[number]

    def remove(self, number: int) -> bool:
        return self._pets.pop(number, None) is not None


def _check(given: Mapping[str, object]) -> None:
    for name, value in given.items():
        if name not in _FIELDS:
            raise Unfit(name, f"is unknown; known are {', '.join(_FIELDS)}")
        reason = _wrong(name, value)
        if reason is not None:
            raise Unfit(name, reason)


def _wrong(name: str, value: object) -> str | None:
    if name in ("kind", "status"):
        words = KINDS if name == "kind" else STATUSES
        return None if value in words else f"must be one of {', '.join(words)}"
    if name == "name":
        return None if isinstance(value, str) and 1 <= len(value) <= 80 else "must be text of 1 to 80 characters"
    if name == "price":
        fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100_000
        return None if fits else "must be a number from 0 to 100000"
    if name == "tags":
        words = cast("list[object]", value) if isinstance(value, list) else [None]
        return None if all(isinstance(word, str) for word in words) else "must be a list of words"
    if name == "origin":
        return _wrong_origin(value)
    return _wrong_home(value)


def _wrong_origin(value: object) -> str | None:
    if not isinstance(value, dict):
        return "must be an object"
    origin = cast("dict[str, object]", value)
    if unknown := origin.keys() - {"breeder", "country", "born"}:
        return f"does not know {', '.join(sorted(unknown))}"
    if not isinstance(origin.get("breeder"), str):
        return "needs a breeder"
    born = origin.get("born", "2020-01-01")
    if not isinstance(born, str) or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", born):
        return "has a 'born' that is no date such as 2025-03-09"
    return None


def _wrong_home(value: object) -> str | None:
    home = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    rule = _HOMES.get(str(home.get("type")))
    if rule is None:
        return f"must be an object whose type is one of {', '.join(_HOMES)}"
    field, kind = rule
    if (
        home.keys() != {"type", field}
        or isinstance(home[field], bool) != (kind is bool)
        or not isinstance(home[field], kind)
    ):
        return f"of type {home['type']} needs exactly the field {field}"
    return None


_FIRST_PETS: tuple[JsonObject, ...] = (
    {
        "name": "Miso",
        "kind": "cat",
        "price": 120,
        "tags": ["quiet", "indoor"],
        "home": {"type": "free", "garden": False},
    },
    {
        "name": "Bruno",
        "kind": "dog",
        "price": 340,
        "tags": ["playful"],
        "origin": {"breeder": "Hill Farm", "country": "PT", "born": "2025-03-09"},
    },
    {"name": "Bubbles", "kind": "fish", "price": 9.5, "tags": ["quiet"], "home": {"type": "tank", "litres": 60}},
    {
        "name": "Captain",
        "kind": "parrot",
        "price": 210,
        "tags": ["talks", "playful"],
        "home": {"type": "cage", "width_cm": 90},
    },
    {
        "name": "Flash",
        "kind": "tortoise",
        "price": 75,
        "status": "reserved",
        "tags": ["quiet"],
        "home": {"type": "free", "garden": True},
    },
    {"name": "Luna", "kind": "cat", "price": 95, "status": "sold", "tags": ["playful"]},
    {"name": "Otto", "kind": "dog", "price": 280, "tags": ["calm"], "home": {"type": "free", "garden": True}},
    {"name": "Neon", "kind": "fish", "price": 4, "tags": ["quiet", "small"], "home": {"type": "tank", "litres": 20}},
)
