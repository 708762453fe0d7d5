"""The fixtures behind the reference SDK's own server: what foreign software says on the wire, in both eras."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import orjson
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError

from tests.conformance import fixtures, task_tools
from tests.conformance.schemas import HEADED, KEYWORDS
from tests.providers.mcp.serving import served
from toolyard.core.call import Progress
from toolyard.core.errors import CallError, ProtocolError
from toolyard.core.json import JsonObject
from toolyard.core.offer import GET_PROMPT, READ_RESOURCE, offer_tool
from toolyard.core.principal import LOCAL_OPERATOR
from toolyard.core.question import DECLINED, ELICITATION, ROOTS, SAMPLING, Question, cannot_ask
from toolyard.core.tool import Kind, Tool
from toolyard.providers.base import Invocation
from toolyard.providers.offers import Completion
from toolyard.providers.python import PythonProvider

MODERN = "2026-07-28"
INVALID_PARAMS = -32602
_REQUESTS: dict[str, type[Any]] = {
    ELICITATION: types.ElicitRequest,
    SAMPLING: types.CreateMessageRequest,
    ROOTS: types.ListRootsRequest,
}
_ANSWERS: dict[str, type[Any]] = {
    ELICITATION: types.ElicitResult,
    SAMPLING: types.CreateMessageResult,
    ROOTS: types.ListRootsResult,
}
_CHANGES: dict[str, tuple[str, type[Any]]] = {
    "test_trigger_tool_change": ("tool", ToolsListChanged),
    "test_trigger_prompt_change": ("prompt", PromptsListChanged),
}


class _Asked(BaseException):
    """Ends a modern request with questions; no `Exception`, so that no tool takes it for its own failure."""

    def __init__(self, result: types.InputRequiredResult) -> None:
        super().__init__()
        self.result = result


class SdkServer:
    """Speaks for modules of Python fixtures; only the wire is the SDK's."""

    def __init__(self) -> None:
        self._provider = PythonProvider.from_module("conf", fixtures.__name__)
        self._tasks = PythonProvider.from_module("tasks", task_tools.__name__)
        self._bus = InMemorySubscriptionBus()
        self._added: dict[str, list[str]] = {"tool": [], "prompt": []}

    async def start(self) -> None:
        await self._provider.start()
        await self._tasks.start()

    async def close(self) -> None:
        await self._provider.close()
        await self._tasks.close()

    def server(self) -> Server[Any]:
        return Server(
            "everything",
            version="1",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get,
            on_completion=self._complete,
            on_subscriptions_listen=ListenHandler(self._bus),
            get_tool_input_schema=lambda name: HEADED if name == "test_x_mcp_header" else None,
        )

    async def _list_tools(self, *_: object) -> types.ListToolsResult:
        tools = [
            {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema.document()}
            for tool in (*await self._provider.tools(), *await self._tasks.tools())
        ]
        return types.ListToolsResult.model_validate({"tools": [*tools, *self._raw()]})

    def _raw(self) -> list[JsonObject]:
        """Tools whose schemas no type hints can say, those that change a list, and those that were added by them."""
        schemas: dict[str, JsonObject] = {
            "json_schema_2020_12_tool": KEYWORDS,
            "test_x_mcp_header": HEADED,
            **{name: {"type": "object"} for name in (*_CHANGES, *self._added["tool"])},
        }
        return [{"name": name, "description": "A fixture.", "inputSchema": schema} for name, schema in schemas.items()]

    async def _call_raw(self, ctx: Any, name: str) -> types.CallToolResult:
        if name in _CHANGES:
            kind, event = _CHANGES[name]
            self._added[kind].append(f"added_{len(self._added[kind])}")
            await self._bus.publish(event())
            if ctx.session.protocol_version != MODERN:
                await getattr(ctx.session, f"send_{kind}_list_changed")()
        return types.CallToolResult(content=[types.TextContent(text=name)])

    async def _call_tool(self, ctx: Any, params: types.CallToolRequestParams) -> Any:
        if any(raw["name"] == params.name for raw in self._raw()):
            return await self._call_raw(ctx, params.name)
        holders = {
            tool.name: (holder, tool) for holder in (self._provider, self._tasks) for tool in await holder.tools()
        }
        holder, tool = holders.get(params.name, (None, None))
        if holder is None or tool is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}")

        async def run() -> Any:
            result = await holder.call(_invocation(ctx, params, tool, params.arguments or {}, sent))
            structured = {"structuredContent": result.structured} if result.has_structured else {}
            return types.CallToolResult.model_validate({"content": list(result.content), **structured})

        sent: list[asyncio.Task[Any]] = []
        try:
            return await _answered(run, sent)
        except ProtocolError as error:
            raise MCPError(error.rpc_code, error.message, error.data) from error
        except CallError as error:
            return types.CallToolResult(content=[types.TextContent(text=error.message)], is_error=True)

    async def _list_resources(self, *_: object) -> types.ListResourcesResult:
        return types.ListResourcesResult.model_validate({"resources": (await self._provider.offers()).resources})

    async def _list_templates(self, *_: object) -> types.ListResourceTemplatesResult:
        templates = (await self._provider.offers()).templates
        return types.ListResourceTemplatesResult.model_validate({"resourceTemplates": templates})

    async def _list_prompts(self, *_: object) -> types.ListPromptsResult:
        added = [{"name": name, "description": "Was added."} for name in self._added["prompt"]]
        prompts = [*(await self._provider.offers()).prompts, *added]
        return types.ListPromptsResult.model_validate({"prompts": prompts})

    async def _read(self, ctx: Any, params: types.ReadResourceRequestParams) -> Any:
        tool = offer_tool("conf", READ_RESOURCE, Kind.PYTHON)
        return await self._offered(ctx, params, tool, {"uri": params.uri}, types.ReadResourceResult)

    async def _get(self, ctx: Any, params: types.GetPromptRequestParams) -> Any:
        tool = offer_tool("conf", GET_PROMPT, Kind.PYTHON)
        arguments: JsonObject = {"name": params.name, "arguments": dict(params.arguments or {})}
        return await self._offered(ctx, params, tool, arguments, types.GetPromptResult)

    async def _offered(self, ctx: Any, params: Any, tool: Tool, arguments: JsonObject, result: type[Any]) -> Any:
        sent: list[asyncio.Task[Any]] = []

        async def run() -> Any:
            found = await self._provider.call(_invocation(ctx, params, tool, arguments, sent))
            return result.model_validate(found.structured)

        try:
            return await _answered(run, sent)
        except ProtocolError as error:
            raise MCPError(error.rpc_code, error.message, error.data) from error
        except CallError as error:
            raise MCPError(INVALID_PARAMS, error.message) from error

    async def _complete(self, _ctx: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
        reference = params.ref.model_dump(by_alias=True, exclude_none=True)
        wanted = Completion(reference, params.argument.name, params.argument.value)
        return types.CompleteResult.model_validate({"completion": await self._provider.complete(wanted)})


@asynccontextmanager
async def everything() -> AsyncGenerator[str, None]:
    """The address of an SDK server with every fixture that Python functions can be."""
    holder = SdkServer()
    await holder.start()
    try:
        with served(holder.server().streamable_http_app()) as base:
            yield f"{base}/mcp"
    finally:
        await holder.close()


async def _answered(run: Callable[[], Coroutine[Any, Any, Any]], sent: list[asyncio.Task[Any]]) -> Any:
    """With what the tool told on the way sent before its result."""
    try:
        return await run()
    except _Asked as asked:
        return asked.result
    finally:
        await asyncio.gather(*sent)


def _invocation(ctx: Any, params: Any, tool: Tool, arguments: JsonObject, sent: list[asyncio.Task[Any]]) -> Invocation:
    def progress(told: Progress) -> None:
        report = ctx.session.report_progress(told.progress, told.total, told.message)
        sent.append(asyncio.get_running_loop().create_task(report))

    def log(told: JsonObject) -> None:
        message = ctx.session.send_log_message(told["level"], told["data"], related_request_id=ctx.request_id)
        sent.append(asyncio.get_running_loop().create_task(message))

    async def ask(questions: Sequence[Question]) -> Mapping[str, JsonObject]:
        return await _ask(ctx, params, questions)

    return Invocation(
        call_id="call_1",
        tool=tool,
        arguments=arguments,
        principal=LOCAL_OPERATOR,
        time_limit=30,
        progress=progress,
        log=log,
        ask=ask,
    )


async def _ask(ctx: Any, params: Any, questions: Sequence[Question]) -> Mapping[str, JsonObject]:
    able = ctx.session.client_capabilities
    for question in questions:
        family = {ELICITATION: "elicitation", SAMPLING: "sampling", ROOTS: "roots"}[question.method]
        if getattr(able, family, None) is None:
            if question.method == ELICITATION:
                return {one.key: DECLINED for one in questions}
            raise cannot_ask(question)
    asked = {one.key: _REQUESTS[one.method].model_validate(_request(one)) for one in questions}
    if ctx.session.protocol_version == MODERN:
        return _given(params, asked)
    answers = await asyncio.gather(
        *(
            ctx.session.send_request(asked[one.key], _ANSWERS[one.method], metadata=_related(ctx.request_id))
            for one in questions
        )
    )
    return {one.key: _plain(answer) for one, answer in zip(questions, answers, strict=True)}


def _given(params: Any, asked: dict[str, Any]) -> Mapping[str, JsonObject]:
    """The answers that came with this round and, in the state, with those before it.

    Raises:
        _Asked: some are not there yet.
    """
    known: dict[str, JsonObject] = orjson.loads(params.request_state) if params.request_state else {}
    known |= {key: _plain(answer) for key, answer in (params.input_responses or {}).items()}
    missing = {key: request for key, request in asked.items() if key not in known}
    if missing:
        state = orjson.dumps(known).decode()
        raise _Asked(types.InputRequiredResult(input_requests=missing, request_state=state))
    return {key: known[key] for key in asked}


def _request(question: Question) -> JsonObject:
    return {"method": question.method, "params": question.params} if question.params else {"method": question.method}


def _plain(answer: Any) -> JsonObject:
    return answer.model_dump(mode="json", by_alias=True, exclude_none=True)


def _related(request_id: Any) -> Any:
    from mcp.shared.message import ServerMessageMetadata

    return ServerMessageMetadata(related_request_id=request_id)
