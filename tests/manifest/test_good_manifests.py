"""What a manifest without mistakes gives."""

from __future__ import annotations

from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from tests.requirements import requirement
from toolyard.manifest import (
    AgentConfig,
    AgentShortForm,
    AppriseNotification,
    ContextConfig,
    JavaScriptConfig,
    JavaScriptTool,
    Manifest,
    McpConfig,
    McpShortForm,
    ModelConfig,
    OpenApiConfig,
    PythonConfig,
    ReevaluationTool,
    Secret,
    ServerConfig,
    SettingsConfig,
    WebhookConfig,
    WebhookNotification,
    WebhookTool,
    json_schema,
    load,
    loads,
)

ENV = {"CRM_MCP_KEY": "s3cret", "TOKEN": "t0ken", "LLM_URL": "http://llm.example.com/v1", "LLM_KEY": "k3y"}
ENV |= {"HOOK_SECRET": "h00k", "PAGER": "slack://pag3r"}

EVERYTHING = """\
agent_config:
  mcps:
    - id: crm
      hostname: https://crm-tools.example.com
      port: 443
      transport: streamable-http
      api_key: ${CRM_MCP_KEY}
      auto_approve: read_only
      approval_timeout: 300
      timeout: 30
      required: true
  context: {reevaluation_tools: [{id: "crm:authenticate_customer"}]}
providers:
  - {id: files, kind: mcp, command: [npx, -y, some-mcp-server], env: {TOKEN: "${TOKEN}"}, required: false}
  - {id: petstore, kind: openapi, url: ./petstore.yaml, cluster: Pets, base_url: http://127.0.0.1:9000}
  - {id: local, kind: python, module: my_tools}
  - {id: hooks, kind: webhook, tools: [{name: notify, url: https://example.com/hook, parameters: {type: object}}]}
  - {id: scripts, kind: javascript, tools: [{name: add, code: "return `${a + b}`", parameters: {type: object}}]}
servers:
  - {id: sales, tools: ["crm:*", "petstore:list*"], agent_mode: true, retrieve_skill: true, skills: ["*"]}
agents:
  - id: support
    model: {name: "openai:gpt-5.2", base_url: "${LLM_URL}", api_key: "${LLM_KEY}"}
    instructions: ./support.md
    tools_enabled: true
    enabled_tools: ["crm:*"]
    codeMode: off
    toolLoadingMode: context-aware
skills: [./skills]
settings:
  retention_days: 90
  public_url: "http://127.0.0.1:8420"
  notifications:
    - {kind: webhook, url: "https://ops.example.com/hook", secret: "${HOOK_SECRET}"}
    - {kind: apprise, url: "${PAGER}", include_arguments: true}
"""


@requirement("manifest.mcps")
@requirement("manifest.top-level")
def test_every_kind_of_entry_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "toolyard.yaml"
    file.write_text(EVERYTHING)

    assert load(file, ENV) == Manifest(
        agent_config=AgentShortForm(
            mcps=(
                McpShortForm(
                    id="crm",
                    hostname="https://crm-tools.example.com",
                    port=443,
                    api_key=Secret("s3cret"),
                    auto_approve="read_only",
                ),
            ),
            context=ContextConfig(reevaluation_tools=(ReevaluationTool(id="crm:authenticate_customer"),)),
        ),
        providers=(
            McpConfig(id="files", command=("npx", "-y", "some-mcp-server"), env={"TOKEN": Secret("t0ken")}),
            OpenApiConfig(
                id="petstore",
                url=str(tmp_path / "petstore.yaml"),
                cluster="Pets",
                base_url="http://127.0.0.1:9000",
            ),
            PythonConfig(id="local", module="my_tools"),
            WebhookConfig(
                id="hooks",
                tools=(WebhookTool(name="notify", url="https://example.com/hook", parameters={"type": "object"}),),
            ),
            JavaScriptConfig(
                id="scripts",
                tools=(JavaScriptTool(name="add", code="return `${a + b}`", parameters={"type": "object"}),),
            ),
        ),
        servers=(
            ServerConfig(
                id="sales", tools=("crm:*", "petstore:list*"), agent_mode=True, retrieve_skill=True, skills=("*",)
            ),
        ),
        agents=(
            AgentConfig(
                id="support",
                model=ModelConfig(name="openai:gpt-5.2", base_url="http://llm.example.com/v1", api_key=Secret("k3y")),
                instructions="./support.md",
                tools_enabled=True,
                enabled_tools=("crm:*",),
                code_mode="off",
                tool_loading_mode="context-aware",
            ),
        ),
        skills=(str(tmp_path / "skills"),),
        settings=SettingsConfig(
            retention_days=90,
            public_url="http://127.0.0.1:8420",
            notifications=(
                WebhookNotification(url="https://ops.example.com/hook", secret=Secret("h00k")),
                AppriseNotification(url=Secret("slack://pag3r"), include_arguments=True),
            ),
        ),
    )


@requirement("manifest.mcps")
def test_a_short_form_becomes_a_required_provider_that_sends_its_key_as_bearer() -> None:
    manifest = loads(EVERYTHING.encode(), env=ENV)

    crm = manifest.all_providers[0]

    assert isinstance(crm, McpConfig)
    assert crm.required
    assert crm.endpoint == "https://crm-tools.example.com:443/mcp"
    assert crm.request_headers == {"Authorization": "Bearer s3cret"}
    assert [config.id for config in manifest.all_providers] == ["crm", "files", "petstore", "local", "hooks", "scripts"]


def test_no_secret_shows_where_a_manifest_is_printed() -> None:
    shown = f"{loads(EVERYTHING.encode(), env=ENV)!r}"

    assert not any(secret in shown for secret in ("s3cret", "t0ken", "k3y", "h00k", "pag3r"))
    assert f"{Secret('s3cret')} {Secret('s3cret')!r}" == "*** Secret('***')"


def test_words_that_yaml_1_1_takes_for_booleans_stay_words() -> None:
    manifest = loads(b"servers: [{id: no, title: yes, tools: [on, 'off']}]")

    assert manifest.servers == (ServerConfig(id="no", title="yes", tools=("on", "off")),)


def test_numbers_in_quotes_are_text_and_a_seconds_field_takes_fractions() -> None:
    manifest = loads(b"providers: [{id: '007', kind: python, module: a.b, timeout: 0.5}]")

    assert manifest.providers == (PythonConfig(id="007", module="a.b", timeout=0.5),)


def test_an_alias_repeats_what_its_anchor_holds() -> None:
    text = b"""\
providers:
  - {id: a, kind: mcp, url: 'http://a', headers: &shared {X-Team: blue}}
  - {id: b, kind: mcp, url: 'http://b', headers: *shared}
"""
    assert [config.headers for config in loads(text).providers if isinstance(config, McpConfig)] == [
        {"X-Team": Secret("blue")},
        {"X-Team": Secret("blue")},
    ]


@requirement("manifest.top-level")
def test_the_published_schema_accepts_the_example_and_refuses_an_unknown_field() -> None:
    schema = jsonschema_rs.validator_for(dict(json_schema()))
    example = yaml.safe_load(EVERYTHING.replace("codeMode: off", 'codeMode: "off"'))

    schema.validate(example)

    example["providers"][2]["modul"] = "typo"
    with pytest.raises(jsonschema_rs.ValidationError):
        schema.validate(example)
