"""Provider and server entries as JSON bodies."""
# ruff: noqa: E501  (messages are shown whole)

from __future__ import annotations

import pytest
from inline_snapshot import snapshot

from toolyard.core.errors import BadInput
from toolyard.manifest import (
    McpConfig,
    OpenApiConfig,
    PythonConfig,
    Secret,
    ServerConfig,
    WebhookConfig,
    WebhookTool,
    dump_provider,
    dump_server,
    parse_provider,
    parse_server,
)

CONFIGS = (
    McpConfig(id="a", url="https://a.example.com/mcp", api_key=Secret("k"), headers={"X-Team": Secret("blue")}),
    McpConfig(id="b", command=("npx", "x"), env={"TOKEN": Secret("t")}, required=True, auto_approve=False),
    OpenApiConfig(id="c", url="/srv/pets.yaml", cluster="Pets", base_url="http://127.0.0.1:9000", timeout=5.0),
    PythonConfig(id="d", module="my.tools"),
    WebhookConfig(id="e", tools=(WebhookTool(name="n", url="http://x", headers={"A": Secret("b")}),)),
)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.id)
def test_what_is_dumped_parses_back_to_the_same(config: McpConfig) -> None:
    assert parse_provider(dump_provider(config, reveal=True)) == config


def test_a_dump_for_showing_masks_secrets() -> None:
    assert dump_provider(CONFIGS[0], reveal=False) == snapshot(
        {"kind": "mcp", "id": "a", "url": "https://a.example.com/mcp", "api_key": "***", "headers": {"X-Team": "***"}}
    )


def test_a_server_dumps_and_parses_back() -> None:
    server = ServerConfig(id="sales", tools=("crm:*", "!crm:delete*"), names="bare", title="Sales")

    assert parse_server(dump_server(server)) == server


def test_a_literal_key_is_fine_in_a_body_and_a_variable_is_not() -> None:
    body = {"id": "a", "kind": "mcp", "url": "http://a", "api_key": "${KEY}", "headers": {"A": "${B}"}}

    with pytest.raises(BadInput) as caught:
        parse_provider(body)

    assert str(caught.value) == snapshot(
        "api_key: ${VAR} is read only in a manifest file. headers.A: ${VAR} is read only in a manifest file."
    )
    assert caught.value.where == "api_key"


def test_a_relative_path_is_refused_where_there_is_no_folder_to_resolve_it() -> None:
    with pytest.raises(BadInput) as caught:
        parse_provider({"id": "a", "kind": "openapi", "url": "pets.yaml"})

    assert str(caught.value) == snapshot("url: expected an absolute path or an http(s) address: 'pets.yaml'.")


def test_several_mistakes_are_told_together_and_the_first_field_is_named() -> None:
    with pytest.raises(BadInput) as caught:
        parse_provider({"id": "A", "kind": "python", "modul": "x", "timeout": "3"})

    assert (caught.value.where, str(caught.value)) == snapshot(
        (
            "modul",
            "modul: unknown field. module: this field is missing. id: 'A' does not fit. timeout: expected a number above 0, at most 86,400, got '3'.",
        )
    )


@pytest.mark.parametrize("body", [{}, {"kind": None}, {"kind": "client", "id": "x"}, {"id": "x"}])
def test_a_body_without_a_kind_that_can_be_added_is_refused(body: dict[str, object]) -> None:
    with pytest.raises(BadInput) as caught:
        parse_provider(body)

    assert caught.value.where == "kind"


def test_a_server_with_an_unknown_field_is_refused_with_the_nearest() -> None:
    with pytest.raises(BadInput) as caught:
        parse_server({"id": "x", "tool": ["*"]})

    assert str(caught.value) == snapshot("tool: unknown field. Did you mean 'tools'?")
