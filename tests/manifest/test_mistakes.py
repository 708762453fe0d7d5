"""Every mistake in a manifest: file, line, field, what was expected, and the nearest known name."""
# ruff: noqa: E501  (messages are shown whole)

from __future__ import annotations

from pathlib import Path

import pytest
from inline_snapshot import snapshot

from tests.requirements import requirement
from toolyard.core.errors import ManifestError
from toolyard.manifest import ManifestMistakes, load, loads

MCP = """\
agent_config:
  mcps:
    - id: crm
      hostname: {hostname}
      port: {port}
      api_key: {api_key}
"""


def refusal(text: str | bytes, env: dict[str, str] | None = None) -> str:
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(ManifestError) as caught:
        loads(data, file="m.yaml", folder=Path("/srv"), env=env or {})
    return str(caught.value)


def mcp(hostname: str = "https://crm.example.com", port: str = "443", api_key: str = "${KEY}") -> str:
    return refusal(MCP.format(hostname=hostname, port=port, api_key=api_key), {"KEY": "s3cret", "HOST": "a b"})


@requirement("manifest.mcps")
def test_a_literal_key_is_refused_and_not_repeated() -> None:
    assert mcp(api_key="sk-live-123") == snapshot(
        "m.yaml:6: agent_config.mcps[0].api_key: expected a ${VAR} reference; a key itself does not belong in a file. Put the key into the environment and write its name here, such as ${CRM_MCP_KEY}."
    )


@requirement("manifest.mcps")
def test_a_path_in_a_hostname_is_refused() -> None:
    assert mcp(hostname="https://crm.example.com/mcp") == snapshot(
        "m.yaml:4: agent_config.mcps[0].hostname: expected scheme and host only, got a path or query: 'https://crm.example.com/mcp'. Write scheme and host only, such as https://crm.example.com, and the port in 'port'."
    )


def test_a_hostname_holds_no_port_no_password_and_a_scheme() -> None:
    assert mcp(hostname="https://crm.example.com:8443") == snapshot(
        "m.yaml:4: agent_config.mcps[0].hostname: expected scheme and host only, got a port: 'https://crm.example.com:8443'. Write scheme and host only, such as https://crm.example.com, and the port in 'port'."
    )
    assert mcp(hostname="https://joe:pw@crm.example.com") == snapshot(
        "m.yaml:4: agent_config.mcps[0].hostname: a hostname must hold no user name or password. Write scheme and host only, such as https://crm.example.com, and the port in 'port'."
    )
    assert mcp(hostname="crm.example.com") == snapshot(
        "m.yaml:4: agent_config.mcps[0].hostname: expected http://... or https://...: 'crm.example.com'."
    )
    assert mcp(hostname="https://[::1") == snapshot(
        "m.yaml:4: agent_config.mcps[0].hostname: this is no address: invalid ipv6 url: 'https://[::1'."
    )


@requirement("manifest.mcps")
@pytest.mark.parametrize("port", ["0", "65536", "-1", "44.5", "true"])
def test_a_port_is_a_whole_number_from_1_to_65535(port: str) -> None:
    assert (
        mcp(port=port) == f"m.yaml:5: agent_config.mcps[0].port: expected a whole number from 1 to 65,535, got {port}."
    )


@requirement("manifest.mcps")
def test_an_unset_variable_is_refused_by_name() -> None:
    assert refusal(MCP.format(hostname="https://a", port=1, api_key="${CRM_KEI}"), {"CRM_KEY": "x"}) == snapshot(
        "m.yaml:6: agent_config.mcps[0].api_key: the environment variable CRM_KEI is not set. Did you mean 'CRM_KEY'?"
    )
    assert refusal(MCP.format(hostname="https://a", port=1, api_key="${CRM_KEY}"), {"CRM_KEY": ""}) == snapshot(
        "m.yaml:6: agent_config.mcps[0].api_key: the environment variable CRM_KEY is empty. Set CRM_KEY before starting."
    )
    assert refusal(MCP.format(hostname='"https://${A-B}"', port=1, api_key="${K}"), {"K": "x"}) == snapshot(
        "m.yaml:4: agent_config.mcps[0].hostname: a reference is written ${NAME}, with letters, digits and '_' only."
    )


def test_a_value_from_a_variable_is_checked_and_never_shown() -> None:
    assert mcp(hostname="http://${HOST}") == snapshot(
        "m.yaml:4: agent_config.mcps[0].hostname: an address holds no blanks or control characters: 'http://${HOST}'."
    )
    assert refusal(MCP.format(hostname="https://a", port=1, api_key="${K}"), {"K": "abc\n"}) == snapshot(
        "m.yaml:6: agent_config.mcps[0].api_key: a secret holds no line breaks. Look for a line break at the end of its value."
    )


@requirement("manifest.mcps")
def test_a_duplicate_id_is_refused_wherever_its_twin_is() -> None:
    text = """\
agent_config:
  mcps: [{id: crm, hostname: http://a, port: 1}]
providers:
  - {id: crm, kind: python, module: m}
servers: [{id: one}, {id: one}]
agents: [{id: default}]
"""
    assert refusal(text) == snapshot("""\
m.yaml:4: providers[0].id: 'crm' is used already, in line 2. Give each its own.
m.yaml:5: servers[1].id: 'one' is used already, in line 5. Give each its own.
m.yaml:6: agents[0].id: 'default' is used already, in line 1. Give each its own.\
""")


def test_an_unknown_field_is_told_with_the_nearest_known_name() -> None:
    text = """\
provider: []
servers:
  - id: sales
    tolls: ["*"]
    colour: red
"""
    assert refusal(text) == snapshot("""\
m.yaml:1: provider: unknown field. Did you mean 'providers'?
m.yaml:4: servers[0].tolls: unknown field. Did you mean 'tools'?
m.yaml:5: servers[0].colour: unknown field. Known here: agent_mode, auto_approve, description, id, names, retrieve_skill, skills, title, token_in_url, tools.\
""")


def test_an_unknown_kind_is_told_with_the_kinds() -> None:
    text = """\
providers:
  - {id: a, kind: opnapi, url: http://x}
  - {id: b, url: http://x}
  - {id: c, kind: [mcp]}
  - just text
"""
    assert refusal(text) == snapshot("""\
m.yaml:2: providers[0].kind: expected one of mcp, openapi, python, webhook, javascript, got 'opnapi'. Did you mean 'openapi'?
m.yaml:3: providers[1].kind: this field is missing; expected one of mcp, openapi, python, webhook, javascript.
m.yaml:4: providers[2].kind: expected one of mcp, openapi, python, webhook, javascript, got a list.
m.yaml:5: providers[3]: expected fields, got 'just text'.\
""")


def test_an_mcp_provider_has_exactly_one_address_and_what_goes_with_it() -> None:
    text = """\
providers:
  - {id: a, kind: mcp}
  - {id: b, kind: mcp, url: http://x, command: [y]}
  - {id: c, kind: mcp, url: http://x, port: 80}
  - {id: d, kind: mcp, hostname: http://x}
  - {id: e, kind: mcp, command: [x], headers: {A: b}}
  - {id: f, kind: mcp, command: [], transport: streamable-http}
  - {id: g, kind: mcp, url: ftp://x}
"""
    assert refusal(text) == snapshot("""\
m.yaml:2: providers[0]: an mcp provider with no address. Give exactly one: url, or hostname with port, or command.
m.yaml:3: providers[1].command: an mcp provider with both url and command. Give exactly one: url, or hostname with port, or command.
m.yaml:4: providers[2].port: this field does not go with url.
m.yaml:5: providers[3].port: this field is missing; hostname needs one.
m.yaml:6: providers[4].headers: this field does not go with command.
m.yaml:7: providers[5].command: expected at least one item, got an empty list.
m.yaml:7: providers[5].transport: command goes with the transport stdio.
m.yaml:8: providers[6].url: expected http://... or https://...: 'ftp://x'.\
""")


def test_a_variable_stands_only_where_a_secret_or_an_address_belongs() -> None:
    text = """\
providers:
  - {id: "${ID}", kind: python, module: m}
servers:
  - {id: a, tools: ["${NAMESPACE}:*"]}
"""
    assert refusal(text, {"ID": "a", "NAMESPACE": "b"}) == snapshot("""\
m.yaml:2: providers[0].id: ${VAR} may stand only where a secret or an address belongs. Write the value itself.
m.yaml:4: servers[0].tools[0]: ${VAR} may stand only where a secret or an address belongs. Write the value itself.\
""")


def test_wrong_types_are_told_with_what_was_given() -> None:
    text = """\
providers: {id: a}
servers:
  - {id: 7, agent_mode: yes, tools: "*", names: barr, skills: [1]}
  - {id: Not Good}
agents:
  - {id: a, model: 7, codeMode: none}
skills: [7]
settings: {retention_days: 0, public_url: 8}
"""
    assert refusal(text) == snapshot("""\
m.yaml:1: providers: expected a list, got fields.
m.yaml:3: servers[0].id: expected text, got 7. Put it in quotes.
m.yaml:3: servers[0].agent_mode: expected true or false, got 'yes'. Write true or false.
m.yaml:3: servers[0].tools: expected a list, got '*'.
m.yaml:3: servers[0].names: expected one of bare, direct, got 'barr'. Did you mean 'bare'?
m.yaml:3: servers[0].skills[0]: expected text, got 1. Put it in quotes.
m.yaml:4: servers[1].id: 'Not Good' does not fit. Use 1 to 64 of a-z, 0-9, '_' and '-', beginning and ending with a letter or digit.
m.yaml:6: agents[0].model: expected text or fields, got 7.
m.yaml:6: agents[0].codeMode: expected one of full, off, selective, got 'none'.
m.yaml:7: skills[0]: expected text, got 7. Put it in quotes.
m.yaml:8: settings.retention_days: expected a whole number from 1 to 36,500, got 0.
m.yaml:8: settings.public_url: expected text, got 8. Put it in quotes.\
""")


def test_a_missing_field_is_told_at_the_line_of_its_entry() -> None:
    text = """\
servers:
  - id: one

  - title: two
"""
    assert refusal(text) == snapshot("m.yaml:4: servers[1].id: this field is missing.")


def test_a_reevaluation_tool_belongs_to_a_declared_provider() -> None:
    text = """\
agent_config:
  mcps: [{id: crm, hostname: http://a, port: 1}]
  context: {reevaluation_tools: [{id: "crmm:login"}, {id: login}]}
"""
    assert refusal(text) == snapshot("""\
m.yaml:3: agent_config.context.reevaluation_tools[1].id: 'login' does not fit. Write it as provider:name, such as crm:search.
m.yaml:3: agent_config.context.reevaluation_tools[0].id: no provider with the id 'crmm' is declared here. Did you mean 'crm'?\
""")


def test_what_is_no_yaml_is_told_with_its_line() -> None:
    assert refusal("servers:\n  - id: a\n b: c\n") == snapshot(
        "m.yaml:3: (top level): this is not YAML: while parsing a block mapping, did not find expected key."
    )
    assert refusal("servers: [\n") == snapshot(
        "m.yaml:2: (top level): this is not YAML: while parsing a flow node, did not find expected node content."
    )
    assert refusal("a: *nowhere\n") == snapshot("m.yaml:1: (top level): this is not YAML: found undefined alias.")
    assert refusal("a: 1\n---\nb: 2\n") == snapshot(
        "m.yaml:2: (top level): this is not YAML: expected a single document in the stream, but found another document."
    )
    assert refusal("servers: []\nservers: []\n") == snapshot(
        "m.yaml:2: servers: this field was given already in line 1."
    )
    assert refusal("servers:\n  - !!python/object:os.system {}\n") == snapshot(
        "m.yaml:2: (top level): the tag tag:yaml.org,2002:python/object:os.system is not supported. Write plain values only."
    )
    assert refusal("? [a, b]\n: c\n") == snapshot("m.yaml:1: (top level): a field's name must be plain text.")
    assert refusal("base: &b {id: x}\nservers:\n  - <<: *b\n") == snapshot(
        "m.yaml:3: servers[0]: merge keys (<<) are not supported."
    )
    assert refusal("a: \x07\n") == snapshot(
        "m.yaml:1: (top level): this is not YAML: the character U+0007 may not stand in it."
    )


def test_a_file_that_holds_nothing_useful_is_refused() -> None:
    assert refusal("") == snapshot(
        "m.yaml:1: (top level): the file is empty. Begin with 'providers:' or 'agent_config:'."
    )
    assert refusal("# only a comment\n") == snapshot(
        "m.yaml:1: (top level): the file is empty. Begin with 'providers:' or 'agent_config:'."
    )
    assert refusal("just text\n") == snapshot("m.yaml:1: (top level): expected fields, got 'just text'.")
    assert refusal("- a\n- b\n") == snapshot("m.yaml:1: (top level): expected fields, got a list.")
    assert refusal(b"servers:\n  - id: \xff\xfe\n") == snapshot(
        "m.yaml:2: (top level): the file is not UTF-8. Save it as UTF-8."
    )


def test_a_missing_file_or_a_folder_is_refused(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none.yaml", "no such file or directory"), (tmp_path, "is a directory")):
        with pytest.raises(ManifestError) as caught:
            load(path)
        assert str(caught.value) == f"{path}: (top level): the file cannot be read: {reason}."


def test_bombs_end_before_they_unfold() -> None:
    laughs = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
    assert refusal(laughs) == snapshot(
        "m.yaml:1: (top level): the file unfolds to more than 100,000 values. Write it out without aliases (&name, *name)."
    )
    assert refusal("a: &a [*a]\n") == snapshot(
        "m.yaml:1: (top level): the file contains itself. Write it out without aliases (&name, *name)."
    )
    assert refusal("a: " + "[" * 5000) == snapshot("m.yaml:1: (top level): the file is nested more than 50 deep.")
    assert refusal("a: " + "{b: " * 60 + "}" * 60) == snapshot(
        "m.yaml:1: (top level): the file is nested more than 50 deep."
    )
    assert refusal(b"#" * 1_100_000) == snapshot(
        "m.yaml: (top level): the file has 1,100,000 bytes; a manifest has at most 1,048,576."
    )


def test_many_mistakes_are_cut_and_counted() -> None:
    with pytest.raises(ManifestMistakes) as caught:
        loads(b"servers:\n" + b"  - {id: [BAD]}\n" * 30)

    assert len(caught.value.mistakes) == 30
    assert caught.value.line == 2
    assert str(caught.value).splitlines()[-1] == "... and 10 more."


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{kind: webhook, url: 'https://x.example', secret: plain}", "secret: expected a ${VAR} reference"),
        ("{kind: webhook, url: 'https://x.example'}", "secret: this field is missing"),
        ("{kind: webhook, url: x.example, secret: '${S}'}", "url: expected http://... or https://..."),
        ("{kind: apprise, url: 'slack://token'}", "url: expected a ${VAR} reference"),
        ("{kind: webhok, url: 'https://x.example'}", "kind: expected one of webhook, apprise, got 'webhok'"),
        ("{kind: apprise, url: '${S}', include_args: true}", "include_args: unknown field."),
    ],
)
def test_a_notification_that_could_not_work_is_refused_with_its_place(entry: str, said: str) -> None:
    told = refusal(f"settings:\n  notifications:\n    - {entry}\n", {"S": "s3cret"})
    assert told.startswith(f"m.yaml:3: settings.notifications[0].{said}")
    assert "plain" not in told
    assert "slack" not in told
