"""Behaviours and tests, both ways: a delivered behaviour has a test, and a test names only behaviours that exist."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

TESTS = Path(__file__).parent
DELIVERED: frozenset[str] = frozenset({"spine", "durable", "mcp"})
"""The parts of requirements.yaml whose every behaviour must have a test."""


@cache
def parts_by_id() -> dict[str, str]:
    """Every behaviour of requirements.yaml with the part that delivers it."""
    document = yaml.safe_load((TESTS / "requirements.yaml").read_text("utf-8"))
    ids = [entry["id"] for entry in document["requirements"]]
    assert len(ids) == len(set(ids)), "an id is there twice"
    return {entry["id"]: entry["part"] for entry in document["requirements"]}


@cache
def places_by_id() -> dict[str, list[str]]:
    """Every id that a test file names, with the places that name it."""
    found: dict[str, list[str]] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        for identifier, line in named_in(file.read_text("utf-8")):
            found.setdefault(identifier, []).append(f"{file.relative_to(TESTS)}:{line}")
    return found


def named_in(source: str) -> Iterator[tuple[str, int]]:
    """The ids in `@requirement(...)`, `requirement(...)` in a `pytestmark`, and `pytest.mark.requirement(...)`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and _is_requirement(node.func):
            for argument in node.args:
                if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                    raise AssertionError(f"line {node.lineno}: write the requirement's id as a plain string")
                yield argument.value, node.lineno


def _is_requirement(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return function.attr == "requirement"
    return isinstance(function, ast.Name) and function.id == "requirement"


def test_a_test_names_only_behaviours_that_exist() -> None:
    unknown = {identifier: places for identifier, places in places_by_id().items() if identifier not in parts_by_id()}
    assert unknown == {}


def test_only_parts_that_exist_are_called_delivered() -> None:
    assert set(parts_by_id().values()) >= DELIVERED


@pytest.mark.parametrize("part", sorted(DELIVERED))
def test_every_behaviour_of_a_delivered_part_has_a_test(part: str) -> None:
    owed = [identifier for identifier, its_part in parts_by_id().items() if its_part == part]
    assert [identifier for identifier in owed if identifier not in places_by_id()] == []


def test_ids_are_found_wherever_a_test_can_name_them() -> None:
    source = """
pytestmark = [pytest.mark.requirement("a"), requirement("b")]
@requirement("c", "d")
def test_x(): ...
class TestY:
    @pytest.mark.requirement("e")
    async def test_z(self): ...
"""
    assert sorted(identifier for identifier, _ in named_in(source)) == ["a", "b", "c", "d", "e"]
