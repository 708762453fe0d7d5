"""What the official suite's scenarios look for, under the names they want: tools, resources and prompts in Python."""

from __future__ import annotations

import asyncio
import struct
import zlib
from base64 import b64encode
from typing import Any

import toolyard
from toolyard.core.call import ToolResult
from toolyard.core.errors import CallError, ProtocolError
from toolyard.core.json import JsonObject
from toolyard.core.question import ELICITATION, ROOTS, SAMPLING, Question

MISSING_CAPABILITY = -32021
WAV = (
    b"RIFF"
    + struct.pack("<I", 36)
    + b"WAVEfmt "
    + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
    + b"data\0\0\0\0"
)


def _png() -> bytes:
    """One red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0\xff\0\0")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


PNG = _png()
IMAGE: JsonObject = {"type": "image", "data": b64encode(PNG).decode(), "mimeType": "image/png"}
AUDIO: JsonObject = {"type": "audio", "data": b64encode(WAV).decode(), "mimeType": "audio/wav"}


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _embedded(uri: str, mime_type: str, text: str) -> JsonObject:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": text}}


# -- tools of both eras


@toolyard.tool(read_only=True)
def test_simple_text() -> str:
    """Answers with a text."""
    return "This is a simple text response for testing."


@toolyard.tool(read_only=True)
def test_image_content() -> ToolResult:
    """Answers with an image."""
    return ToolResult((IMAGE,))


@toolyard.tool(read_only=True)
def test_audio_content() -> ToolResult:
    """Answers with a sound."""
    return ToolResult((AUDIO,))


@toolyard.tool(read_only=True)
def test_embedded_resource() -> ToolResult:
    """Answers with a resource."""
    return ToolResult((_embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."),))


@toolyard.tool(read_only=True)
def test_multiple_content_types() -> ToolResult:
    """Answers with a text, an image and a resource."""
    mixed = _embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return ToolResult((_text("Multiple content types test:"), IMAGE, mixed))


@toolyard.tool
def test_error_handling() -> str:
    """Fails."""
    raise toolyard.ToolError("This tool intentionally returns an error for testing")


@toolyard.tool(read_only=True)
async def test_tool_with_progress(context: toolyard.Context) -> str:
    """Reports how far it is."""
    for done in (0, 50, 100):
        context.progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(0.05)
    return "Progress reported."


# -- legacy


@toolyard.tool(read_only=True)
async def test_tool_with_logging(context: toolyard.Context) -> str:
    """Logs three messages."""
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        context.log(said, level="info")
        await asyncio.sleep(0.05)
    return "Logging done."


@toolyard.tool
async def test_sampling(prompt: str, context: toolyard.Context) -> str:
    """Has the caller's model answer."""
    answer = await context.sample({"messages": [{"role": "user", "content": _text(prompt)}], "maxTokens": 100})
    return f"LLM response: {_sampled(answer)}"


@toolyard.tool
async def test_elicitation(message: str, context: toolyard.Context) -> str:
    """Asks the caller's user."""
    schema = _form(
        username={"type": "string", "description": "User's response"},
        email={"type": "string", "description": "User's email address"},
    )
    answer = await context.elicit(message, schema)
    return f"User response: action={answer['action']}, content={answer.get('content')}"


@toolyard.tool
async def test_elicitation_sep1034_defaults(context: toolyard.Context) -> str:
    """Asks with a default in every field."""
    fields: dict[str, JsonObject] = {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "description": "Verification status", "default": True},
    }
    answer = await context.elicit("Please review and update the form fields with defaults", _form(**fields))
    return f"Elicitation completed: action={answer['action']}, content={answer.get('content')}"


@toolyard.tool
async def test_elicitation_sep1330_enums(context: toolyard.Context) -> str:
    """Asks with every style of a choice."""
    options = ["option1", "option2", "option3"]
    titled = [
        {"const": f"value{n}", "title": f"{nth} Option"} for n, nth in ((1, "First"), (2, "Second"), (3, "Third"))
    ]
    fields: dict[str, JsonObject] = {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    schema: JsonObject = {"type": "object", "properties": fields, "required": []}
    answer = await context.elicit("Please select options from the enum fields", schema)
    return f"Elicitation completed: action={answer['action']}, content={answer.get('content')}"


@toolyard.tool(read_only=True)
async def test_reconnection() -> str:
    """Takes a moment."""
    await asyncio.sleep(0.1)
    return "Reconnection test completed."


# -- modern


@toolyard.tool(task="never")
async def test_missing_capability(context: toolyard.Context) -> str:
    """Cannot go on without the caller's model."""
    try:
        answer = await context.sample({"messages": [{"role": "user", "content": _text("Hello")}], "maxTokens": 10})
    except CallError as error:
        required: JsonObject = {"requiredCapabilities": {"sampling": {}}}
        raise ProtocolError(MISSING_CAPABILITY, "This tool needs the client's sampling.", required) from error
    return _sampled(answer)


@toolyard.tool
async def test_streaming_elicitation(context: toolyard.Context) -> str:
    """Asks the caller's user."""
    return str((await context.elicit("Please confirm", _form(ok={"type": "boolean"})))["action"])


@toolyard.tool(read_only=True)
def test_logging_tool(context: toolyard.Context) -> str:
    """Logs one message."""
    context.log("A message of the tool")
    return "Logged."


# -- modern: input_required


@toolyard.tool
async def test_input_required_result_elicitation(context: toolyard.Context) -> str:
    """Asks for a name."""
    answer = await context.elicit("What is your name?", _form(name={"type": "string"}), key="user_name")
    return f"Hello, {_content(answer).get('name')}!"


@toolyard.tool
async def test_input_required_result_sampling(context: toolyard.Context) -> str:
    """Has the caller's model answer."""
    params = _capital_of_france()
    return f"The answer is: {_sampled(await context.sample(params, key='capital_question'))}"


@toolyard.tool
async def test_input_required_result_list_roots(context: toolyard.Context) -> str:
    """Asks for the client's folders."""
    return f"Roots: {(await context.roots(key='client_roots')).get('roots')}"


@toolyard.tool
async def test_input_required_result_request_state(context: toolyard.Context) -> str:
    """Goes on where it was."""
    answer = await context.elicit("Please confirm", _form(ok={"type": "boolean"}), key="confirm")
    return f"state-ok: {answer['action']}"


@toolyard.tool
async def test_input_required_result_multiple_inputs(context: toolyard.Context) -> str:
    """Asks for three things at once."""
    greeting: JsonObject = {
        "messages": [{"role": "user", "content": _text("Generate a greeting")}],
        "maxTokens": 50,
    }
    form: JsonObject = {
        "mode": "form",
        "message": "What is your name?",
        "requestedSchema": _form(name={"type": "string"}),
    }
    answers = await context.ask(
        Question("user_name", ELICITATION, form),
        Question("greeting", SAMPLING, greeting),
        Question("client_roots", ROOTS, {}),
    )
    return f"Received: {sorted(answers)}"


@toolyard.tool
async def test_input_required_result_multi_round(context: toolyard.Context) -> str:
    """Asks twice."""
    first = await context.elicit("Step 1: What is your name?", _form(name={"type": "string"}), key="step1")
    second = await context.elicit("Step 2: What is your favorite color?", _form(color={"type": "string"}), key="step2")
    return f"{_content(first).get('name')} likes {_content(second).get('color')}."


@toolyard.tool
async def test_input_required_result_tampered_state(context: toolyard.Context) -> str:
    """Asks, with a state that nobody else can make."""
    answer = await context.elicit("Please confirm", _form(ok={"type": "boolean"}), key="confirm")
    return f"Confirmed: {answer['action']}"


@toolyard.tool
async def test_input_required_result_capabilities(context: toolyard.Context) -> str:
    """Asks for what the client can answer, and for nothing else."""
    try:
        return _sampled(await context.sample(_capital_of_france(), key="capital_question"))
    except CallError:
        answer = await context.elicit("What is your name?", _form(name={"type": "string"}), key="user_name")
        return f"Hello, {_content(answer).get('name')}!"


# -- resources and prompts


@toolyard.resource("test://static-text", name="Static text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@toolyard.resource("test://static-binary", name="Static binary", mime_type="image/png")
def static_binary() -> bytes:
    """An image."""
    return PNG


@toolyard.resource("test://watched-resource", name="Watched", mime_type="text/plain")
def watched() -> str:
    """Something to subscribe to."""
    return "Watched resource content."


@toolyard.resource("test://template/{id}/data", name="Template", mime_type="application/json")
def template(id: str) -> dict[str, Any]:  # noqa: A002 - the suite's own word
    """Data by its id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@toolyard.prompt
def test_simple_prompt() -> str:
    """One message."""
    return "This is a simple prompt for testing."


@toolyard.prompt
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """One message with arguments.

    Args:
        arg1: First test argument.
        arg2: Second test argument.
    """
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@toolyard.completion(test_prompt_with_arguments, "arg1")
def places(value: str) -> list[str]:
    return [place for place in ("paris", "park", "party", "test") if place.startswith(value)]


@toolyard.prompt
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:  # noqa: N803 - the suite's own word
    """A resource and a message."""
    resource = _embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
    return [
        {"role": "user", "content": resource},
        {"role": "user", "content": _text("Please process the embedded resource above.")},
    ]


@toolyard.prompt
def test_prompt_with_image() -> list[Any]:
    """An image and a message."""
    return [
        {"role": "user", "content": IMAGE},
        {"role": "user", "content": _text("Please analyze the image above.")},
    ]


@toolyard.prompt
async def test_input_required_result_prompt(context: toolyard.Context) -> str:
    """Asks first."""
    schema = _form(context={"type": "string"})
    answer = await context.elicit("What context should the prompt use?", schema, key="user_context")
    return f"Use this context: {_content(answer).get('context')}"


def _form(**fields: JsonObject) -> JsonObject:
    return {"type": "object", "properties": fields, "required": list(fields)}


def _capital_of_france() -> JsonObject:
    message: JsonObject = {"role": "user", "content": _text("What is the capital of France?")}
    return {"messages": [message], "maxTokens": 100}


def _content(answer: JsonObject) -> JsonObject:
    content = answer.get("content")
    return content if isinstance(content, dict) else {}


def _sampled(answer: JsonObject) -> str:
    return str(_content(answer).get("text"))
