from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.calls.yard import yard
from toolyard.calls.cleaning import clean, preview
from toolyard.calls.images import PLACEHOLDER
from toolyard.calls.shape import MOST_CHARACTERS, decode_result, encode_result
from toolyard.core.call import Origin, ToolResult
from toolyard.providers.base import Invocation

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 2
PNG_TEXT = base64.b64encode(PNG).decode()

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def answering(result: ToolResult) -> Any:
    async def answer(invocation: Invocation) -> ToolResult:
        del invocation
        return result

    return answer


async def test_a_long_result_is_cut_with_a_marker_and_kept_whole(tmp_path: Path) -> None:
    text = "".join(f"{n:06d}\n" for n in range(3_000))
    async with yard(tmp_path, answering(ToolResult.of_text(text))) as y:
        outcome = await y.call("pets:read", {"text": "a"})
        assert outcome.result is not None
        shown = outcome.result.text
        assert len(shown) <= MOST_CHARACTERS
        assert shown.startswith(text[:7_000])
        assert shown.endswith(text[-2_500:])
        assert f"11,500 of 21,000 characters left out. The whole result of {outcome.call_id}" in shown
        assert decode_result(await y.calls.full_result(outcome.call_id)).text == text
        record = await y.calls.get(outcome.call_id)
        assert record.preview is not None
        assert len(record.preview) <= 200
        assert record.result is None
        assert record.result_ref is not None


async def test_a_result_of_exactly_the_limit_is_not_cut(tmp_path: Path) -> None:
    async with yard(tmp_path, answering(ToolResult.of_text("x" * MOST_CHARACTERS))) as y:
        outcome = await y.call("pets:read", {"text": "a"})
        assert outcome.result == ToolResult.of_text("x" * MOST_CHARACTERS)


async def test_large_structured_content_goes_with_the_text_unless_a_schema_promises_it(tmp_path: Path) -> None:
    async with yard(tmp_path, answering(ToolResult.of_value({"rows": ["x" * 100] * 200}))) as y:
        plain = await y.call("pets:read", {"text": "a"}, origin=Origin.MCP)
        promised = await y.call("pets:typed", {"text": "a"}, origin=Origin.MCP)
        assert plain.result is not None
        assert promised.result is not None
        assert not plain.result.has_structured
        assert promised.result.structured == {"rows": ["x" * 100] * 200}
        assert len(promised.result.text) <= MOST_CHARACTERS


async def test_control_and_invisible_characters_are_stripped_everywhere(tmp_path: Path) -> None:
    hidden = "a\x1b[31mb\u200bc\u202ed\U000e0041e\x00f\tg\nh"
    result = ToolResult(
        content=({"type": "text", "text": hidden},), structured={"k\u200b": [hidden]}, has_structured=True
    )
    async with yard(tmp_path, answering(result)) as y:
        outcome = await y.call("pets:read", {"text": "a"})
        assert outcome.result is not None
        assert outcome.result.content == ({"type": "text", "text": "abcdef\tg\nh"},)
        assert outcome.result.structured == {"k": ["abcdef\tg\nh"]}
        assert decode_result(await y.calls.full_result(outcome.call_id)).text == hidden


def test_emoji_and_joined_scripts_survive_cleaning() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    persian = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    assert clean(f"{family} {persian} ❤\ufe0f") == f"{family} {persian} ❤\ufe0f"


async def test_an_image_becomes_a_placeholder_and_a_url(tmp_path: Path) -> None:
    block = {"type": "image", "data": PNG_TEXT, "mimeType": "image/png"}
    async with yard(tmp_path, answering(ToolResult(content=(block,)))) as y:
        outcome = await y.call("pets:read", {"text": "a"})
        assert outcome.result is not None
        url = outcome.result.content[1]["uri"]
        assert outcome.result.content == (
            {"type": "text", "text": PLACEHOLDER},
            {"type": "resource_link", "uri": url, "name": "image", "mimeType": "image/png"},
        )
        assert outcome.result.meta == {
            "toolyard/images": [{"url": url, "mimeType": "image/png", "bytes": len(PNG)}],
        }
        assert await y.blobs.get(str(url).removeprefix("http://yard/blobs/")) == PNG


async def test_an_mcp_client_keeps_the_image_block_and_is_told_the_url(tmp_path: Path) -> None:
    block = {"type": "image", "data": PNG_TEXT, "mimeType": "image/png"}
    async with yard(tmp_path, answering(ToolResult(content=(block,)))) as y:
        outcome = await y.call("pets:read", {"text": "a"}, origin=Origin.MCP)
        assert outcome.result is not None
        assert outcome.result.content == (block,)
        assert outcome.result.meta is not None


async def test_images_inside_text_and_values_are_replaced_once(tmp_path: Path) -> None:
    value = {"shot": f"data:image/png;base64,{PNG_TEXT}", "bare": PNG_TEXT, "note": "fine"}
    async with yard(tmp_path, answering(ToolResult.of_value(value))) as y:
        outcome = await y.call("pets:read", {"text": "a"})
        assert outcome.result is not None
        assert outcome.result.structured == {"shot": PLACEHOLDER, "bare": PLACEHOLDER, "note": "fine"}
        assert json.loads(outcome.result.text) == outcome.result.structured
        assert outcome.result.meta is not None
        images: Any = outcome.result.meta["toolyard/images"]
        assert len(images) == 2
        for image in images:
            assert await y.blobs.get(image["url"].removeprefix("http://yard/blobs/")) == PNG


async def test_what_only_looks_like_an_image_is_left_alone(tmp_path: Path) -> None:
    block = {"type": "image", "data": "not base64 at all!", "mimeType": "image/png"}
    async with yard(tmp_path, answering(ToolResult(content=(block,)))) as y:
        outcome = await y.call("pets:read", {"text": "a"})
        assert outcome.result == ToolResult(content=(block,))


async def test_long_binary_content_stays_out_of_answers_that_are_no_mcp_clients(tmp_path: Path) -> None:
    data = base64.b64encode(bytes(30_000)).decode()
    resource = {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "application/pdf", "blob": data}}
    sound = {"type": "audio", "mimeType": "audio/wav", "data": data}
    result = ToolResult((resource, sound))
    async with yard(tmp_path, answering(result)) as y:
        by_http = await y.call("pets:read", {"text": "a"}, origin=Origin.HTTP)
        by_mcp = await y.call("pets:read", {"text": "a"}, origin=Origin.MCP)
        assert by_http.result is not None
        where = f"They are in the whole result: /v1/calls/{by_http.call_id}/result]"
        told = f"[30,000 bytes of application/pdf left out. {where}"
        assert by_http.result.content == (
            {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "application/pdf", "text": told}},
            {"type": "text", "text": f"[30,000 bytes of audio/wav left out. {where}"},
        )
        assert decode_result(await y.calls.full_result(by_http.call_id)) == result
        assert by_mcp.result is not None
        assert by_mcp.result.content == result.content


async def test_a_long_embedded_resource_is_cut_too(tmp_path: Path) -> None:
    block = {"type": "resource", "resource": {"uri": "file:///a", "text": "y" * 20_000}}
    async with yard(tmp_path, answering(ToolResult(content=(block,)))) as y:
        outcome = await y.call("pets:read", {"text": "a"})
        assert outcome.result is not None
        resource: Any = outcome.result.content[0]["resource"]
        assert len(resource["text"]) <= MOST_CHARACTERS
        assert "left out" in resource["text"]


async def test_a_finished_call_tells_the_same_again(tmp_path: Path) -> None:
    result = ToolResult(
        content=(
            {"type": "text", "text": "x\u200by" * 9_000},
            {"type": "image", "data": PNG_TEXT, "mimeType": "image/png"},
        ),
        meta={"vendor/key": [1, 2]},
    )
    async with yard(tmp_path, answering(result)) as y:
        outcome = await y.call("pets:write", {"text": "a"})
        assert await y.calls.wait(outcome.call_id, 1) == outcome


@given(st.lists(st.dictionaries(st.text(), json_values), max_size=3), json_values, st.booleans())
def test_results_survive_the_record(content: list[dict[str, Any]], structured: Any, failed: bool) -> None:
    result = ToolResult(content=tuple(content), structured=structured, has_structured=True, is_error=failed)
    assert decode_result(encode_result(result)) == result


@given(st.text())
def test_cleaning_is_idempotent_and_leaves_nothing_unseen(text: str) -> None:
    cleaned = clean(text)
    assert clean(cleaned) == cleaned
    assert not any(char in cleaned for char in "\x00\x1b\u200b\u202e\ufeff")


@given(st.text())
def test_a_preview_is_one_short_line(text: str) -> None:
    line = preview(text)
    assert len(line) <= 200
    assert "\n" not in line
