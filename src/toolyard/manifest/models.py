"""What a manifest may say, as types. `checking` reads the rules from here, `schema` publishes them.

`Form` marks what plain types cannot say: which texts may hold a `${VAR}`, and how an address must look.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct, field

from toolyard.core.names import NAMESPACE
from toolyard.manifest.secret import Secret


class Form(StrEnum):
    """How a text is read."""

    ID = "id"
    HOSTNAME = "hostname"
    URL = "url"
    URL_OR_FILE = "url_or_file"
    FOLDER = "folder"
    KEY = "key"
    """A secret that a file may only name: `${VAR}`."""
    SECRET = "secret"  # noqa: S105  (the name of a form, no password)
    TOOL = "tool"
    MODULE = "module"
    VERBATIM = "verbatim"
    """Text for people or programs: `${...}` in it is not ours."""


def _form(form: Form, description: str) -> Meta:
    return Meta(description=description, extra={"form": form})


Id: TypeAlias = Annotated[
    str,
    Meta(
        pattern=f"^{NAMESPACE.pattern}$",
        description="1 to 64 of a-z, 0-9, '_' and '-', beginning and ending with a letter or digit.",
        extra={"form": Form.ID},
    ),
]
Hostname: TypeAlias = Annotated[
    str, _form(Form.HOSTNAME, "Scheme and host only, such as https://crm.example.com; may be ${VAR}.")
]
Url: TypeAlias = Annotated[str, _form(Form.URL, "An http:// or https:// address; may hold ${VAR}.")]
UrlOrFile: TypeAlias = Annotated[
    str, _form(Form.URL_OR_FILE, "An http(s) address, or a path relative to the manifest; may hold ${VAR}.")
]
Folder: TypeAlias = Annotated[str, _form(Form.FOLDER, "A path, relative to the manifest.")]
KeyReference: TypeAlias = Annotated[Secret, _form(Form.KEY, "A ${VAR} reference; the key itself is refused here.")]
SecretText: TypeAlias = Annotated[Secret, _form(Form.SECRET, "May hold ${VAR}. Never printed.")]
Text: TypeAlias = Annotated[str, _form(Form.VERBATIM, "Text, taken as it is.")]
Port: TypeAlias = Annotated[int, Meta(ge=1, le=65535, description="A TCP port.")]
Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=86_400, description="Seconds.")]
Patterns: TypeAlias = tuple[Annotated[str, Meta(min_length=1)], ...]
AutoApprove: TypeAlias = bool | Literal["read_only"]
JsonSchema: TypeAlias = dict[str, Any]

DEFAULT_TIMEOUT = 30.0
DEFAULT_APPROVAL_TIMEOUT = 300.0


class _Model(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class _Provider(_Model, frozen=True, kw_only=True, tag_field="kind"):
    """What every provider has. `id` is the namespace of its tools."""

    id: Id
    required: bool = False
    """Refuse to start without it; otherwise it is shown as down and retried."""
    timeout: Seconds = DEFAULT_TIMEOUT
    """Per call, without the time spent waiting for a person."""
    start_timeout: Seconds | None = None
    """For connecting and listing; by default 60 for a `command`, which may have to download itself first, else 10."""
    auto_approve: AutoApprove = True
    approval_timeout: Seconds = DEFAULT_APPROVAL_TIMEOUT


class McpConfig(_Provider, frozen=True, kw_only=True, tag="mcp"):
    """An MCP server: at `url`, at `hostname` and `port` (path `/mcp`), or the `command` of a child process."""

    url: Url | None = None
    hostname: Hostname | None = None
    port: Port | None = None
    transport: Literal["streamable-http", "stdio"] | None = None
    """Follows from the address; only needed to be explicit."""
    command: Annotated[tuple[Text, ...], Meta(min_length=1)] | None = None
    env: dict[str, SecretText] = {}
    cwd: Folder | None = None
    api_key: KeyReference | None = None
    """Sent as `Authorization: Bearer`."""
    headers: dict[str, SecretText] = {}
    era: Literal["auto", "modern", "legacy"] = "auto"

    @property
    def endpoint(self) -> str | None:
        """The URL to speak MCP with; None for a command."""
        if self.url is not None:
            return self.url
        if self.hostname is None:
            return None
        return f"{self.hostname}:{self.port}/mcp" if self.port is not None else f"{self.hostname}/mcp"

    @property
    def request_headers(self) -> dict[str, str]:
        """Revealed headers, with the key as `Authorization: Bearer`."""
        headers = {name: value.reveal() for name, value in self.headers.items()}
        if self.api_key is not None:
            headers["Authorization"] = f"Bearer {self.api_key.reveal()}"
        return headers


class OpenApiConfig(_Provider, frozen=True, kw_only=True, tag="openapi"):
    """An API document at `url` (or a file); one tool per operation, shown as one `cluster`."""

    url: UrlOrFile
    cluster: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    base_url: Url | None = None
    """Where operations are sent, instead of the document's own servers."""
    headers: dict[str, SecretText] = {}

    @property
    def is_file(self) -> bool:
        return "://" not in self.url

    @property
    def request_headers(self) -> dict[str, str]:
        return {name: value.reveal() for name, value in self.headers.items()}


class PythonConfig(_Provider, frozen=True, kw_only=True, tag="python"):
    """The `@toolyard.tool` functions of a module that can be imported from the manifest's folder or the path."""

    module: Annotated[str, Meta(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$", extra={"form": Form.MODULE})]


class WebhookTool(_Model, frozen=True, kw_only=True):
    name: Annotated[str, Meta(min_length=1, max_length=512)]
    url: Url
    description: Text = ""
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    parameters: JsonSchema = {}
    headers: dict[str, SecretText] = {}


class WebhookConfig(_Provider, frozen=True, kw_only=True, tag="webhook"):
    """Checked and kept; not served yet."""

    tools: tuple[WebhookTool, ...] = ()


class JavaScriptTool(_Model, frozen=True, kw_only=True):
    name: Annotated[str, Meta(min_length=1, max_length=512)]
    code: Text
    description: Text = ""
    parameters: JsonSchema = {}


class JavaScriptConfig(_Provider, frozen=True, kw_only=True, tag="javascript"):
    """Checked and kept; not served yet."""

    tools: tuple[JavaScriptTool, ...] = ()


class PluginConfig(_Provider, frozen=True, kw_only=True):
    """The base of what a package's own kind takes: `class Weather(PluginConfig, tag="weather", frozen=True, ...)`."""


BuiltInConfig: TypeAlias = McpConfig | OpenApiConfig | PythonConfig | WebhookConfig | JavaScriptConfig
BUILT_IN_KINDS = ("mcp", "openapi", "python", "webhook", "javascript")
ProviderConfig: TypeAlias = BuiltInConfig | PluginConfig
if TYPE_CHECKING:
    _Providers: TypeAlias = tuple[ProviderConfig, ...]
else:
    _Providers = tuple[BuiltInConfig, ...]  # what is read without any package; `kinds.manifest_of` adds to it


class McpShortForm(_Model, frozen=True, kw_only=True):
    """An entry of `agent_config.mcps`: required unless it says otherwise."""

    id: Id
    hostname: Hostname
    port: Port
    transport: Literal["streamable-http"] = "streamable-http"
    api_key: KeyReference | None = None
    auto_approve: AutoApprove = True
    approval_timeout: Seconds = DEFAULT_APPROVAL_TIMEOUT
    timeout: Seconds = DEFAULT_TIMEOUT
    start_timeout: Seconds | None = None
    required: bool = True

    def as_provider(self) -> McpConfig:
        return McpConfig(
            id=self.id,
            hostname=self.hostname,
            port=self.port,
            transport=self.transport,
            api_key=self.api_key,
            auto_approve=self.auto_approve,
            approval_timeout=self.approval_timeout,
            timeout=self.timeout,
            start_timeout=self.start_timeout,
            required=self.required,
        )


class ServerConfig(_Model, frozen=True, kw_only=True):
    """A downstream MCP endpoint `/mcp/{id}`: a slice of the catalog and how it is shown."""

    id: Id
    tools: Patterns = ("*",)
    """Patterns over `namespace:name`; `!pattern` excludes."""
    names: Literal["direct", "bare"] = "direct"
    agent_mode: bool = False
    retrieve_skill: bool = False
    skills: Patterns = ()
    title: Text | None = None
    description: Text | None = None
    auto_approve: AutoApprove = True
    """For tools whose provider, cluster and own setting leave it open."""
    token_in_url: bool = False
    """Take a key also from the path, `/mcp/{id}/t/{key}`, for clients that can send no header. Addresses are seen by
    more people than headers are: leave it off where you can."""


class ModelConfig(_Model, frozen=True, kw_only=True):
    name: Annotated[str, Meta(min_length=1)]
    base_url: Url | None = None
    api_key: KeyReference | None = None


class ReevaluationTool(_Model, frozen=True, kw_only=True):
    id: Annotated[str, Meta(pattern="^[^:]+:.+$", description="provider:name", extra={"form": Form.TOOL})]


class ContextConfig(_Model, frozen=True, kw_only=True):
    reevaluation_tools: tuple[ReevaluationTool, ...] = ()


class _Agent(_Model, frozen=True, kw_only=True):
    model: str | ModelConfig | None = None
    instructions: Text | None = None
    tools_enabled: bool = False
    enabled_tools: Patterns = ()
    code_mode: Literal["off", "selective", "full"] = field(name="codeMode", default="off")
    tool_loading_mode: Literal["all", "context-aware"] = field(name="toolLoadingMode", default="all")
    context: ContextConfig = ContextConfig()


class AgentConfig(_Agent, frozen=True, kw_only=True):
    """Checked and kept; agents are served by a later version."""

    id: Id


class AgentShortForm(_Agent, frozen=True, kw_only=True):
    """`agent_config`: the agent `default` and its MCP providers."""

    mcps: tuple[McpShortForm, ...] = ()


class _Notification(_Model, frozen=True, kw_only=True, tag_field="kind"):
    include_arguments: bool = False
    """Send the arguments' values too; otherwise only their names."""


class WebhookNotification(_Notification, frozen=True, kw_only=True, tag="webhook"):
    """Calls that wait for a decision are posted to `url`, signed with `secret` (HMAC-SHA256)."""

    url: Url
    secret: KeyReference


class AppriseNotification(_Notification, frozen=True, kw_only=True, tag="apprise"):
    """The same as a message through anything that Apprise knows: mail, chat, phones. Its URL holds credentials."""

    url: KeyReference


NotificationConfig: TypeAlias = WebhookNotification | AppriseNotification


class SettingsConfig(_Model, frozen=True, kw_only=True):
    retention_days: Annotated[int, Meta(ge=1, le=36_500)] | None = None
    """Calls older than this are deleted; None keeps them."""
    public_url: Url | None = None
    """How clients reach this yard from outside, for links."""
    allowed_hosts: Patterns = ()
    """More names for the Host and Origin headers of MCP clients, besides `public_url` and loopback; `*` for all."""
    blobs: Text | None = None
    """Where large results, images and imported documents are kept: a folder, or a URL such as `s3://bucket/prefix`.
    Several nodes need one that all of them reach."""
    hold_seconds: Annotated[float, Meta(ge=0, le=3600)] | None = None
    """How long an MCP request is held while its call waits for a person; 60 when it is not said."""
    task_after_seconds: Annotated[float, Meta(gt=0, le=3600)] | None = None
    """How long an MCP client that knows tasks waits for a result before it gets a task; 2 when it is not said."""
    node_lease_seconds: Annotated[float, Meta(ge=1, le=300)] | None = None
    """After how long without a sign of life others take over a node's work; 5 on PostgreSQL when it is not said."""
    pick_up_seconds: Annotated[float, Meta(gt=0, le=86_400)] | None = None
    """How long a session's client has to pick up a call of one of its tools; 300 when it is not said."""
    resolve_threshold: Annotated[float, Meta(ge=0, le=1)] | None = None
    """The share of an entry of RESOLVE_ACTIONS that an action must speak of; measured on the catalog when it is not
    said. Lower finds more and refuses less."""
    notifications: tuple[NotificationConfig, ...] = ()
    """Who is told when a call waits for a decision."""


class Manifest(_Model, frozen=True, kw_only=True):
    agent_config: AgentShortForm | None = None
    providers: _Providers = ()
    servers: tuple[ServerConfig, ...] = ()
    agents: tuple[AgentConfig, ...] = ()
    skills: tuple[Folder, ...] = ()
    settings: SettingsConfig = SettingsConfig()

    @property
    def all_providers(self) -> tuple[ProviderConfig, ...]:
        """`agent_config.mcps` in their long form, then `providers`."""
        short = self.agent_config.mcps if self.agent_config is not None else ()
        return (*(entry.as_provider() for entry in short), *self.providers)
