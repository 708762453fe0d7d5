"""Schemas and texts from type hints and docstrings."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, Optional

import jsonschema_rs
import pydantic
import pytest
from typing_extensions import TypedDict

import toolyard
from tests.requirements import requirement
from toolyard.core.errors import BadInput, ProviderError
from toolyard.core.tool import Annotations, Kind, Tool
from toolyard.providers.python import PythonProvider, PythonTool
from toolyard.providers.python.docstring import Docstring, parse


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 2


class Options(TypedDict):
    deep: NotRequired[bool]


class Order(pydantic.BaseModel):
    lines: list[Point] = []
    note: str | None = pydantic.Field(None, max_length=3)


async def the_tool(function: Any) -> Tool:
    provider = PythonProvider("p", [function])
    await provider.start()
    (tool,) = await provider.tools()
    return tool


@requirement("python.function")
async def test_a_definition_is_made_from_hints_and_docstring() -> None:
    @toolyard.tool(read_only=True, open_world=False, cluster="Maps", title="Find", tags=("geo",), time_limit=3)
    def find(
        where: Point,
        colour: Colour,
        size: Literal["s", "l"] = "s",
        options: Options | None = None,
        near: Annotated[float, pydantic.Field(ge=0, description="in metres")] = 1.5,
        *,
        names: list[str] | None = None,
        context: toolyard.Context,
    ) -> dict[str, int]:
        """Finds things.

        More about it.

        Args:
            where: the place
                to begin
            near (float): not used, the hint has its own
            names: of whom
        """
        raise NotImplementedError

    point = {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 2}},
        "required": ["x"],
        "additionalProperties": False,
    }
    tool = await the_tool(find)
    schema = dict(tool.input_schema.document())
    definitions: Any = schema.pop("$defs")
    assert definitions["Colour"] == {"type": "string", "enum": ["red", "blue"]}
    assert {k: v for k, v in definitions["Point"].items() if k != "additionalProperties"} == {
        k: v for k, v in point.items() if k != "additionalProperties"
    }
    assert schema == {
        "type": "object",
        "properties": {
            "where": {"$ref": "#/$defs/Point", "description": "the place to begin"},
            "colour": {"$ref": "#/$defs/Colour"},
            "size": {"type": "string", "enum": ["s", "l"], "default": "s"},
            "options": {"anyOf": [{"$ref": "#/$defs/Options"}, {"type": "null"}], "default": None},
            "near": {"type": "number", "minimum": 0, "description": "in metres", "default": 1.5},
            "names": {
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                "default": None,
                "description": "of whom",
            },
        },
        "required": ["where", "colour"],
        "additionalProperties": False,
    }
    assert (tool.id, tool.description, tool.title) == ("p:find", "Finds things.\n\nMore about it.", "Find")
    assert (tool.kind, tool.cluster, tool.tags, tool.time_limit) == (Kind.PYTHON, "Maps", ("geo",), 3)
    assert tool.annotations == Annotations(read_only=True, open_world=False)
    assert tool.output_schema == {"type": "object", "additionalProperties": {"type": "integer"}}


async def test_only_objects_have_an_output_schema() -> None:
    def text() -> str: ...
    def numbers() -> list[int]: ...
    def nothing() -> None: ...
    def unsaid(): ...
    def order() -> Order: ...
    def maybe() -> Optional[Order]: ...  # noqa: UP045

    found = {
        f.__name__: (await the_tool(toolyard.tool(f))).output_schema for f in (text, numbers, nothing, unsaid, maybe)
    }
    assert set(found.values()) == {None}
    schema = (await the_tool(toolyard.tool(order))).output_schema
    assert schema is not None
    assert schema["type"] == "object"
    jsonschema_rs.validator_for(dict(schema)).validate({"lines": [{"x": 1, "y": 2}], "note": "abc"})


async def test_a_function_without_parameters_takes_an_empty_object() -> None:
    @toolyard.tool
    def nothing() -> str:
        return "x"

    schema = (await the_tool(nothing)).input_schema.document()
    assert schema == {"type": "object", "properties": {}, "additionalProperties": False}


async def test_a_decorated_function_can_still_be_called() -> None:
    @toolyard.tool(name="plus-one")
    def plus(a: int) -> int:
        return a + 1

    assert plus(1) == 2
    made = PythonTool.of(plus)
    assert made is not None
    assert made.name == "plus-one"


@pytest.mark.parametrize("bad", [lambda *args: None, lambda a, /: None])
async def test_parameters_that_have_no_name_are_refused(bad: Any) -> None:
    bad.__name__ = "bad"
    with pytest.raises(ProviderError, match=r"Tool 'bad': parameter '.*' cannot be given by name"):
        await the_tool(toolyard.tool(bad))


async def test_hints_without_a_schema_are_refused_with_the_tools_name() -> None:
    class Strange: ...

    def odd(thing: Strange) -> None: ...

    odd.__annotations__["thing"] = Strange
    with pytest.raises(ProviderError, match="Tool 'odd': no schema can be made"):
        await the_tool(toolyard.tool(odd))
    odd.__annotations__["thing"] = "NoSuchType"
    with pytest.raises(ProviderError, match="Tool 'odd': its type hints cannot be read: name 'NoSuchType'"):
        await the_tool(toolyard.tool(odd))


def test_what_is_no_function_or_has_no_name_is_refused() -> None:
    for bad in (Point, 7, lambda: None):
        with pytest.raises(BadInput):
            toolyard.tool(bad)  # type: ignore[arg-type]
    with pytest.raises(BadInput):
        toolyard.tool(time_limit=0)(lambda: None)
    with pytest.raises(BadInput, match="not decorated"):
        PythonProvider("p", [len])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, Docstring("", {})),
        ("One line.", Docstring("One line.", {})),
        (
            "Sums.\n\nArgs:\n    a: first: with colon\n    *rest (int): others\n\n      and more\n\nReturns:\n    It.",
            Docstring("Sums.", {"a": "first: with colon", "rest": "others and more"}),
        ),
        (
            "Sums.\n\nParameters\n----------\na, b : int\n    Numbers.\nc\n    Third.\n\nReturns\n-------\nint",
            Docstring("Sums.", {"a": "Numbers.", "b": "Numbers.", "c": "Third."}),
        ),
        (
            "Sums.\n\n:param int a: first\n    goes on\n:param b: second\n:type b: int\n:returns: sum",
            Docstring("Sums.", {"a": "first goes on", "b": "second"}),
        ),
        ("Say: this is no section.\n\nNor: this", Docstring("Say: this is no section.\n\nNor: this", {})),
    ],
)
def test_docstrings_of_all_styles_are_read(text: str | None, expected: Docstring) -> None:
    assert parse(text) == expected
