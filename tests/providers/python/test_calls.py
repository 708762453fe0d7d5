"""Calling Python functions as tools: arguments, results, failures, progress, cancelling."""

from __future__ import annotations

import asyncio
import datetime as dt
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pydantic
import pytest
import structlog.testing

import toolyard
from tests.providers.fakes import invocation
from tests.requirements import requirement
from toolyard.core.call import Progress, ToolResult
from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.principal import LOCAL_OPERATOR
from toolyard.providers.python import PythonProvider


@dataclass
class Point:
    x: int
    y: int = 2


class Order(pydantic.BaseModel):
    due: dt.date
    lines: list[Point] = []


@asynccontextmanager
async def offered(*functions: Any) -> AsyncIterator[Any]:
    """`await call("name", argument=...)` on a started provider."""
    provider = PythonProvider("p", [toolyard.tool(f) for f in functions])
    await provider.start()
    tools = {tool.name: tool for tool in await provider.tools()}

    async def call(name: str, arguments: dict[str, Any] | None = None, **more: Any) -> ToolResult:
        return await provider.call(invocation(tools[name], arguments, **more))

    yield call
    await provider.close()


@requirement("python.function")
async def test_arguments_arrive_as_the_types_that_were_asked_for_in_sync_and_async_functions() -> None:
    def sync(order: Order, point: Point, *, when: dt.datetime | None = None) -> dict[str, Any]:
        assert isinstance(order, Order)
        assert isinstance(point, Point)
        assert threading.current_thread() is not threading.main_thread()
        return {"due": order.due.year, "sum": point.x + point.y, "when": when}

    async def later(order: Order) -> Order:
        await asyncio.sleep(0)
        return order

    async with offered(sync, later) as call:
        order = {"due": "2026-11-20", "lines": [{"x": 1, "y": 2}]}
        result = await call("sync", {"order": order, "point": {"x": 1}})
        assert result == ToolResult.of_value({"due": 2026, "sum": 3, "when": None})
        assert (await call("later", {"order": order})).structured == order


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", ToolResult.of_text("text")),
        (None, ToolResult(content=())),
        (3, ToolResult.of_value(3)),
        ([1, Point(1)], ToolResult.of_value([1, {"x": 1, "y": 2}])),
        ({"at": dt.date(2026, 1, 2)}, ToolResult.of_value({"at": "2026-01-02"})),
        (b"\x00\xff", ToolResult.of_value("AP8=")),
        (ToolResult.of_text("own"), ToolResult.of_text("own")),
        (
            toolyard.Image(b"\x89PNG\r\n\x1a\n1"),
            ToolResult(content=({"type": "image", "data": "iVBORw0KGgox", "mimeType": "image/png"},)),
        ),
        (
            ["look", toolyard.Image(b"x", "image/x")],
            ToolResult(
                content=({"type": "text", "text": "look"}, {"type": "image", "data": "eA==", "mimeType": "image/x"})
            ),
        ),
    ],
)
async def test_what_a_function_returns_becomes_content(value: object, expected: ToolResult) -> None:
    def give() -> Any:
        return value

    async with offered(give) as call:
        assert await call("give") == expected


async def test_an_async_function_behind_a_plain_wrapper_is_awaited() -> None:
    async def inner() -> str:
        return "awaited"

    def wrapper() -> Any:
        return inner()

    async with offered(wrapper) as call:
        assert await call("wrapper") == ToolResult.of_text("awaited")


@pytest.mark.parametrize("value", [object(), toolyard.Image(b"?"), {1, object()}])
async def test_what_cannot_be_written_is_a_clear_error(value: object) -> None:
    def give() -> Any:
        return value

    async with offered(give) as call:
        with pytest.raises(CallError) as caught:
            await call("give")
    assert caught.value.code is ErrorCode.UPSTREAM
    assert caught.value.suggestion is not None


@requirement("python.function")
async def test_an_exception_becomes_one_clean_line_and_its_traceback_goes_to_the_log_only() -> None:
    def explode() -> None:
        raise KeyError("no\n  such   key")

    async def explode_later() -> None:
        raise ValueError("x" * 1000)

    async with offered(explode, explode_later) as call:
        with structlog.testing.capture_logs() as logs, pytest.raises(CallError) as caught:
            await call("explode")
        assert (caught.value.code, str(caught.value)) == (ErrorCode.UPSTREAM, r"KeyError: 'no\n such key'")
        (entry,) = logs
        assert (entry["event"], entry["tool"], entry["log_level"]) == ("tool raised", "explode", "error")
        assert isinstance(entry["exc_info"], KeyError)
        assert entry["exc_info"].__traceback__ is not None
        with pytest.raises(CallError) as caught:
            await call("explode_later")
        assert len(caught.value.message) == 500


async def test_a_deliberate_failure_keeps_its_message_and_suggestion() -> None:
    def refuse() -> None:
        raise toolyard.ToolError("The account is closed.", suggestion="Open another one.")

    async with offered(refuse) as call:
        with pytest.raises(CallError) as caught:
            await call("refuse")
    error = caught.value
    assert (error.code, error.message, error.suggestion) == (
        ErrorCode.UPSTREAM,
        "The account is closed.",
        "Open another one.",
    )


async def test_an_argument_that_fits_the_schema_but_not_the_type_is_named() -> None:
    def due(order: Order) -> None: ...

    async with offered(due) as call:
        with pytest.raises(CallError) as caught:
            await call("due", {"order": {"due": "2026-02-31"}})
    assert caught.value.code is ErrorCode.INVALID_ARGUMENTS
    assert caught.value.message.startswith("due: order.due: Input should be a valid date")
    assert caught.value.message.endswith("(given: '2026-02-31')")


@requirement("python.function")
async def test_the_context_tells_who_calls_and_carries_progress_from_any_thread() -> None:
    seen: list[Progress] = []

    def work(context: toolyard.Context, steps: int) -> str:
        for step in range(steps):
            context.progress(step + 1, steps, "working")
        return f"{context.call_id} {context.principal.id} {context.time_limit}"

    async def work_async(context: toolyard.Context) -> None:
        context.progress(1)

    async with offered(work, work_async) as call:
        result = await call("work", {"steps": 2}, progress=seen.append)
        assert result.text == f"call_1 {LOCAL_OPERATOR.id} 10.0"
        assert seen == [Progress(1, 2, "working"), Progress(2, 2, "working")]
        await call("work_async", progress=seen.append)
        assert seen[-1] == Progress(1)
        assert (await call("work", {"steps": 1})).text


@requirement("python.function")
async def test_cancelling_sets_the_handle_of_a_sync_function_and_cancels_an_async_one() -> None:
    began, ended = threading.Event(), threading.Event()
    cancelled = asyncio.Event()

    def work(context: toolyard.Context) -> None:
        began.set()
        if context.cancelled.wait(10):
            ended.set()

    async def work_async() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with offered(work, work_async) as call:
        for name in ("work", "work_async"):
            began.clear()
            task = asyncio.create_task(call(name))
            assert await asyncio.to_thread(began.wait, 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    assert await asyncio.to_thread(ended.wait, 5)
    assert cancelled.is_set()


async def test_many_sync_calls_run_at_the_same_time_and_the_rest_waits() -> None:
    together = threading.Barrier(32)

    def meet() -> int:
        return together.wait(5)

    async with offered(meet) as call:
        async with asyncio.timeout(10):
            results = await asyncio.gather(*(call("meet") for _ in range(64)))
    assert sorted(r.structured for r in results) == sorted([*range(32), *range(32)])
