"""Modules named in a manifest, and what importing the package itself costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import toolyard
from tests.requirements import requirement
from toolyard.core.errors import ProviderError
from toolyard.providers.python import PythonProvider

GOOD = """
import toolyard
from {name}_more import second

@toolyard.tool
def zebra() -> str:
    "Zebra."
    return "z"

@toolyard.tool
async def ant(legs: int = 6) -> int:
    return legs

alias = ant
def plain(): ...
"""


@requirement("python.function")
async def test_the_decorated_functions_of_a_module_become_tools_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "ty_good.py").write_text(GOOD.format(name="ty_good"))
    (tmp_path / "ty_good_more.py").write_text("import toolyard\n@toolyard.tool\ndef second(): ...\n")
    provider = PythonProvider.from_module("mine", "ty_good", path=tmp_path)
    assert provider.address == "python:ty_good"
    await provider.start()
    assert [tool.id for tool in await provider.tools()] == ["mine:zebra", "mine:ant", "mine:second"]
    await provider.close()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = 1\nx = 1 / 0\n", r"cannot be imported: .*ty_bad_0\.py:2: ZeroDivisionError: division by zero"),
        ("def f(:\n", r"cannot be imported: .*ty_bad_1\.py:1: SyntaxError"),
        (
            "import ty_not_there\n",
            r"cannot be imported: .*ty_bad_2\.py:1: ModuleNotFoundError: No module named 'ty_not",
        ),
        ("x = 1\n", r"ty_bad_3.*holds no tools"),
        (
            "import toolyard\n@toolyard.tool\ndef f(a: 'Nope'): ...\n",
            r"Tool 'f': its type hints cannot be read: name 'Nope' is not defined",
        ),
    ],
)
async def test_a_module_that_cannot_be_used_says_where_and_why(
    tmp_path: Path, source: str, expected: str, request: pytest.FixtureRequest
) -> None:
    number = request.node.callspec.indices["source"]
    (tmp_path / f"ty_bad_{number}.py").write_text(source)
    with pytest.raises(ProviderError, match=expected):
        await PythonProvider.from_module("mine", f"ty_bad_{number}", path=tmp_path).start()


async def test_a_module_that_is_not_there_is_said_to_be_so() -> None:
    with pytest.raises(ProviderError, match=r"The module 'ty_nowhere\.sub' was not found"):
        await PythonProvider.from_module("mine", "ty_nowhere.sub").start()


def test_the_public_names_are_all_there_and_nothing_else_is() -> None:
    public = {
        "Context",
        "Image",
        "ProtocolError",
        "ToolError",
        "Toolyard",
        "__version__",
        "completion",
        "prompt",
        "resource",
        "tool",
    }
    assert set(toolyard.__all__) == public
    assert all(getattr(toolyard, name) is not None for name in toolyard.__all__)
    assert dir(toolyard) == sorted(toolyard.__all__)
    with pytest.raises(AttributeError):
        _ = toolyard.nothing


def test_importing_toolyard_and_decorating_loads_nothing_heavy() -> None:
    code = (
        "import sys, toolyard\n"
        "@toolyard.tool\ndef f(a: int) -> int: return a\n"
        "heavy = {'pydantic', 'mcp', 'mcp_types', 'fastapi', 'numpy', 'aiohttp', 'jinja2', 'psycopg', 'obstore'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_function_that_never_returns_does_not_keep_the_process_alive() -> None:
    code = (
        "import asyncio, threading, time, toolyard\n"
        "from tests.providers.fakes import invocation\n"
        "from toolyard.providers.python import PythonProvider\n"
        "began = threading.Event()\n"
        "@toolyard.tool\ndef stuck() -> None:\n    began.set(); time.sleep(600)\n"
        "async def main():\n"
        "    provider = PythonProvider('p', [stuck]); await provider.start()\n"
        "    (tool,) = await provider.tools()\n"
        "    task = asyncio.create_task(provider.call(invocation(tool)))\n"
        "    await asyncio.to_thread(began.wait); task.cancel(); await provider.close()\n"
        "asyncio.run(main()); print('ended')"
    )
    root = Path(__file__).parents[3]
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=20, cwd=root, check=False
    )
    assert (ended.stdout, ended.returncode) == ("ended\n", 0), ended.stderr
