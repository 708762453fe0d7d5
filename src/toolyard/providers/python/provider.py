"""Python functions as a provider."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from toolyard.core.call import ToolResult
from toolyard.core.errors import BadInput, CallError, ErrorCode
from toolyard.core.schema import Schema
from toolyard.core.tool import Kind, Tool
from toolyard.providers.base import Invocation
from toolyard.providers.python.context import Context
from toolyard.providers.python.decorator import PythonTool
from toolyard.providers.python.docstring import parse
from toolyard.providers.python.loading import load_tools
from toolyard.providers.python.results import to_result
from toolyard.providers.python.signature import Signature, read_signature
from toolyard.providers.python.threads import Threads

_log = structlog.stdlib.get_logger("toolyard.providers.python")
_LONGEST_MESSAGE = 500


@dataclass(frozen=True, slots=True)
class _Prepared:
    tool: Tool
    function: Callable[..., Any]
    signature: Signature
    is_async: bool


class PythonProvider:
    """Decorated functions under one namespace. Sync functions run in up to 32 daemon threads."""

    kind = Kind.PYTHON

    def __init__(
        self,
        provider_id: str,
        tools: Sequence[PythonTool | Callable[..., Any]] = (),
        *,
        module: str | None = None,
        path: Path | None = None,
    ) -> None:
        self._id = provider_id
        self._given = tuple(_as_tool(item) for item in tools)
        self._module = module
        self._path = path
        self._prepared: dict[str, _Prepared] = {}
        self._threads: Threads | None = None
        self._running: set[Context] = set()

    @staticmethod
    def from_module(provider_id: str, module: str, *, path: Path | None = None) -> PythonProvider:
        """The decorated functions of a module, imported by `start`; `path` is a folder to look in first."""
        return PythonProvider(provider_id, module=module, path=path)

    @property
    def id(self) -> str:
        return self._id

    @property
    def address(self) -> str:
        return f"python:{self._module or self._id}"

    async def start(self) -> None:
        """
        Raises:
            ProviderError: the module cannot be imported (with file and line), or a function cannot be a tool.
        """
        self._prepared = await asyncio.to_thread(self._prepare_all)
        if self._threads is None:
            self._threads = Threads(f"tools-{self._id}")

    async def tools(self) -> Sequence[Tool]:
        return [prepared.tool for prepared in self._prepared.values()]

    async def call(self, invocation: Invocation) -> ToolResult:
        """
        Raises:
            CallError: invalid_arguments naming the field; upstream when the function raised.
        """
        prepared = self._prepared.get(invocation.tool.name)
        if prepared is None or self._threads is None:
            raise CallError(ErrorCode.UPSTREAM, f"The tool {invocation.tool.id!r} is no longer there.")
        keywords = prepared.signature.convert(invocation.arguments)
        context = Context(invocation)
        if prepared.signature.context_parameter:
            keywords[prepared.signature.context_parameter] = context
        self._running.add(context)
        try:
            if prepared.is_async:
                value = await prepared.function(**keywords)
            else:
                value = await self._threads.run(partial(prepared.function, **keywords))
                if inspect.isawaitable(value):  # an async function behind a plain wrapper
                    value = await value
        except asyncio.CancelledError:
            context.cancelled.set()
            raise
        except CallError:
            raise
        except Exception as error:
            raise self._failed(invocation, error) from error
        finally:
            self._running.discard(context)
        return to_result(value, prepared.tool.name)

    async def health(self) -> None:
        """Functions of this process are always there."""

    def on_change(self, notify: Callable[[], None]) -> None:
        """The list is fixed once started."""

    async def close(self) -> None:
        for context in self._running:
            context.cancelled.set()
        if self._threads is not None:
            self._threads.close()
            self._threads = None

    def _prepare_all(self) -> dict[str, _Prepared]:
        """In a thread: importing a module, and pydantic with it, takes a while."""
        found = self._given
        if self._module is not None:
            found = (*found, *load_tools(self._module, self._path))
        return {item.name: self._prepare(item) for item in found}

    def _prepare(self, item: PythonTool) -> _Prepared:
        doc = parse(item.function.__doc__)
        signature = read_signature(item.function, doc, item.name)
        return _Prepared(
            tool=Tool(
                namespace=self._id,
                name=item.name,
                description=item.description if item.description is not None else doc.description,
                input_schema=Schema(signature.input_schema),
                output_schema=signature.output_schema,
                annotations=item.annotations,
                kind=Kind.PYTHON,
                cluster=item.cluster,
                title=item.title,
                tags=item.tags,
                origin={"module": item.function.__module__, "function": item.function.__qualname__},
                time_limit=item.time_limit,
                task=item.task,
            ),
            function=item.function,
            signature=signature,
            is_async=inspect.iscoroutinefunction(item.function),
        )

    def _failed(self, invocation: Invocation, error: Exception) -> CallError:
        _log.error(
            "tool raised", provider=self._id, tool=invocation.tool.name, call_id=invocation.call_id, exc_info=error
        )
        text = " ".join(str(error).split())
        message = f"{type(error).__name__}: {text}" if text else type(error).__name__
        return CallError(ErrorCode.UPSTREAM, message[:_LONGEST_MESSAGE])


def _as_tool(item: PythonTool | Callable[..., Any]) -> PythonTool:
    if isinstance(item, PythonTool):
        return item
    marked = PythonTool.of(item)
    if marked is None:
        raise BadInput(f"{item!r} is not decorated with @toolyard.tool.", where="tools")
    return marked
