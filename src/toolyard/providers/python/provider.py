"""Python functions as a provider."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import structlog

from toolyard.core.call import ToolResult
from toolyard.core.errors import BadInput, CallError, ErrorCode
from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.offer import READ_RESOURCE, Offers
from toolyard.core.schema import Schema
from toolyard.core.tool import Kind, Tool
from toolyard.providers.base import Invocation
from toolyard.providers.offers import Completion
from toolyard.providers.python.context import Context
from toolyard.providers.python.decorator import PythonTool
from toolyard.providers.python.docstring import parse
from toolyard.providers.python.loading import load
from toolyard.providers.python.offering import MOST_COMPLETIONS, PythonOffers, to_contents, to_messages
from toolyard.providers.python.offers import PythonCompletion, PythonOffer, PythonPrompt, PythonResource, offer_of
from toolyard.providers.python.results import to_result
from toolyard.providers.python.running import Runnable
from toolyard.providers.python.threads import Threads

_log = structlog.stdlib.get_logger("toolyard.providers.python")
_LONGEST_MESSAGE = 500


@dataclass(frozen=True, slots=True)
class _Prepared:
    tool: Tool
    runnable: Runnable


Given: TypeAlias = PythonTool | PythonOffer | Callable[..., Any]


class PythonProvider:
    """Decorated functions under one namespace. Sync functions run in up to 32 daemon threads."""

    kind = Kind.PYTHON

    def __init__(
        self,
        provider_id: str,
        tools: Sequence[Given] = (),
        *,
        module: str | None = None,
        path: Path | None = None,
    ) -> None:
        self._id = provider_id
        self._given = [_as_marked(item) for item in tools]
        self._module = module
        self._path = path
        self._prepared: dict[str, _Prepared] = {}
        self._offers = PythonOffers(())
        self._changed: Callable[[], None] = _nobody
        self._updated: Callable[[str], None] = _nobody
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
        self._prepared, self._offers = await asyncio.to_thread(self._prepare_all)
        if self._threads is None:
            self._threads = Threads(f"tools-{self._id}")

    async def tools(self) -> Sequence[Tool]:
        return [prepared.tool for prepared in self._prepared.values()]

    async def offers(self) -> Offers:
        return self._offers.listed

    async def add(self, *items: Given) -> None:
        """More tools, resources or prompts, also while the provider runs; one of the same name is replaced.

        Raises:
            BadInput: it is not decorated.
            ProviderError: it cannot be made one.
        """
        self._given += [_as_marked(item) for item in items]
        if self._threads is not None:
            self._prepared, self._offers = await asyncio.to_thread(self._prepare_all)
            self._changed()

    def resource_changed(self, uri: str) -> None:
        """Tell the clients that follow this resource. On the event loop's thread."""
        self._updated(uri)

    async def call(self, invocation: Invocation) -> ToolResult:
        """
        Raises:
            CallError: invalid_arguments naming the field; upstream when the function raised.
        """
        if invocation.tool.offer:
            return await self._answer(invocation)
        prepared = self._prepared.get(invocation.tool.name)
        if prepared is None:
            raise CallError(ErrorCode.UPSTREAM, f"The tool {invocation.tool.id!r} is no longer there.")
        return to_result(await self._run(prepared.runnable, invocation.arguments, invocation), prepared.tool.name)

    async def complete(self, completion: Completion) -> JsonObject:
        completer = self._offers.completer(completion.reference, completion.argument)
        if callable(completer):
            given = (completion.value, completion.given)[: len(inspect.signature(completer).parameters)]
            found = completer(*given)
            values = [str(value) for value in (await found if inspect.isawaitable(found) else found)]
        else:
            values = [value for value in completer if value.lower().startswith(completion.value.lower())]
        shown: list[JsonValue] = [*values[:MOST_COMPLETIONS]]
        return {"values": shown, "total": len(values), "hasMore": len(values) > MOST_COMPLETIONS}

    async def follow(self, uris: frozenset[str]) -> None:
        """All changes are told anyway."""

    def on_update(self, notify: Callable[[str], None]) -> None:
        self._updated = notify

    async def _answer(self, invocation: Invocation) -> ToolResult:
        """A resource's contents, or a prompt's messages, as MCP's result of that method."""
        arguments = invocation.arguments
        if invocation.tool.name == READ_RESOURCE:
            uri = str(arguments["uri"])
            prepared, variables = self._offers.resource(uri)
            value = await self._run(prepared.runnable, variables, invocation)
            result = to_contents(value, uri, prepared.resource.mime_type)
        else:
            prompt = self._offers.prompt(str(arguments["name"]))
            given = arguments.get("arguments")
            value = await self._run(prompt.runnable, given if isinstance(given, dict) else {}, invocation)
            description = prompt.definition.get("description")
            result = to_messages(value, description if isinstance(description, str) else None)
        return ToolResult(content=(), structured=result, has_structured=True)

    async def _run(self, runnable: Runnable, arguments: JsonObject, invocation: Invocation) -> object:
        if self._threads is None:
            raise CallError(ErrorCode.UPSTREAM, f"The provider {self._id!r} is closed.")
        keywords = runnable.signature.convert(arguments)
        context = Context(invocation, self._updated)
        if runnable.signature.context_parameter:
            keywords[runnable.signature.context_parameter] = context
        self._running.add(context)
        try:
            if runnable.is_async:
                value = await runnable.function(**keywords)
            else:
                value = await self._threads.run(partial(runnable.function, **keywords))
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
        return value

    async def health(self) -> None:
        """Functions of this process are always there."""

    def on_change(self, notify: Callable[[], None]) -> None:
        self._changed = notify

    async def close(self) -> None:
        for context in self._running:
            context.cancelled.set()
        if self._threads is not None:
            self._threads.close()
            self._threads = None

    def _prepare_all(self) -> tuple[dict[str, _Prepared], PythonOffers]:
        """In a thread: importing a module, and pydantic with it, takes a while."""
        found = list(self._given)
        if self._module is not None:
            found += load(self._module, self._path)
        tools = {item.name: self._prepare(item) for item in found if isinstance(item, PythonTool)}
        return tools, PythonOffers([item for item in found if not isinstance(item, PythonTool)])

    def _prepare(self, item: PythonTool) -> _Prepared:
        doc = parse(item.function.__doc__)
        runnable = Runnable.of(item.function, item.name)
        return _Prepared(
            tool=Tool(
                namespace=self._id,
                name=item.name,
                description=item.description if item.description is not None else doc.description,
                input_schema=Schema(runnable.signature.input_schema),
                output_schema=runnable.signature.output_schema,
                annotations=item.annotations,
                kind=Kind.PYTHON,
                cluster=item.cluster,
                title=item.title,
                tags=item.tags,
                origin={"module": item.function.__module__, "function": item.function.__qualname__},
                time_limit=item.time_limit,
                task=item.task,
            ),
            runnable=runnable,
        )

    def _failed(self, invocation: Invocation, error: Exception) -> CallError:
        _log.error(
            "tool raised", provider=self._id, tool=invocation.tool.name, call_id=invocation.call_id, exc_info=error
        )
        text = " ".join(str(error).split())
        message = f"{type(error).__name__}: {text}" if text else type(error).__name__
        return CallError(ErrorCode.UPSTREAM, message[:_LONGEST_MESSAGE])


def _as_marked(item: Given) -> PythonTool | PythonOffer:
    if isinstance(item, PythonTool | PythonResource | PythonPrompt | PythonCompletion):
        return item
    marked = PythonTool.of(item) or offer_of(item)
    if marked is None:
        raise BadInput(f"{item!r} is not decorated with @toolyard.tool.", where="tools")
    return marked


def _nobody(*_: object) -> None:
    """Until somebody listens."""
