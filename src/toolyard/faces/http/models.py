"""What the control plane takes and gives, as its OpenAPI document shows it."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt

from toolyard.core.call import CallState
from toolyard.core.principal import Scope
from toolyard.core.record import ToolMetrics
from toolyard.core.tool import ActionClass, Kind, TaskMode
from toolyard.faces.http.validation import Strict

T = TypeVar("T")
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
"""RFC 3339, UTC."""
JsonMap = dict[str, Any]


class Given(BaseModel):
    """What we answer."""

    model_config = ConfigDict(frozen=True)


class Listed(Given, Generic[T]):
    items: list[T]
    next_cursor: str | None = None


class FieldProblem(Given):
    pointer: str
    message: str
    suggestion: str | None = None


class Problem(Given):
    """RFC 9457 problem details, with what our other faces say too."""

    type: str
    title: str
    status: int
    detail: str
    error: str
    code: str
    suggestion: str | None = None
    errors: list[FieldProblem] | None = None
    call_id: str | None = None


class ToolPolicy(Given):
    """What an operator decided; null leaves the tool's own value."""

    enabled: bool
    approval: str | None
    time_limit: float | None
    description: str | None
    task: TaskMode | None


class ToolOut(Given):
    id: str
    namespace: str
    name: str
    direct_name: str
    title: str | None
    description: str
    kind: Kind
    cluster: str
    tags: list[str]
    method: str | None = Field(description="Of an imported operation.")
    path: str | None = Field(description="Of an imported operation.")
    annotations: JsonMap
    action_class: ActionClass
    available: bool
    callable: bool
    reason: str | None = Field(description="Why it cannot be called.")
    policy: ToolPolicy
    input_schema: JsonMap | None = Field(
        default=None, description="JSON Schema 2020-12. Left out with `schemas=false`."
    )
    output_schema: JsonMap | None = None
    score: float | None = Field(default=None, description="With `q`: higher fits better.")
    match: str | None = Field(default=None, description="With `q`: why it was found.")


class ToolPatch(Strict):
    """Only the fields that are given change; null goes back to the tool's own value."""

    enabled: StrictBool | None = None
    approval: Literal["ask", "never"] | None = Field(
        default=None, description="Whether somebody is asked before each call; null asks as provider and cluster say."
    )
    time_limit: StrictInt | StrictFloat | None = Field(default=None, gt=0, le=86_400, description="Seconds.")
    description: str | None = Field(default=None, max_length=20_000)
    task: TaskMode | None = Field(
        default=None,
        description="Whether MCP clients may get a task in place of the result: when the call takes long (`auto`), "
        "at once (`always`), or `never`.",
    )


class CallBody(Strict):
    arguments: JsonMap = Field(default_factory=dict)
    server: str | None = Field(default=None, description="Name the tool within this server's slice only.")
    session: str | None = Field(default=None, max_length=200, description="The session that the call belongs to.")


class CallError(Given):
    error: str
    code: str
    suggestion: str | None = None


class CallResult(Given):
    """As in MCP. `images` are those that were taken out of the content: `{url, mimeType, bytes}`."""

    content: list[JsonMap]
    structured: Any = None
    is_error: bool
    images: list[JsonMap] = []
    meta: JsonMap | None = None


class WaitingOut(Given):
    """What an open call waits for."""

    kind: Literal["approval", "client", "question"]
    id: str | None = Field(description="Of the approval, or of the client's request.")
    deadline: Time | None
    url: str | None = Field(default=None, description="Where a person can decide.")


class CallStarted(Given):
    id: str
    tool: str
    state: CallState
    waiting: WaitingOut | None = None


class CallEnded(Given):
    id: str
    tool: str
    state: CallState
    result: CallResult | None = None
    error: CallError | None = None
    warnings: list[str] = []


class CallSummary(Given):
    """One record. Sizes are bytes of JSON; tokens are an estimate."""

    id: str
    tool: str
    state: CallState
    principal: str
    origin: str
    server: str | None
    created: Time
    started: Time | None
    finished: Time | None
    duration_ms: float | None
    error_code: str | None
    error: str | None
    suggestion: str | None
    preview: str | None
    details: JsonMap | None
    input_bytes: int
    output_bytes: int | None
    tokens: int | None
    idempotency_key: str | None
    session: str | None = None


class CallOut(CallSummary):
    arguments: Any
    result_url: str | None = Field(description="Where the whole result is.")
    waiting: WaitingOut | None = None


class Cancelled(Given):
    id: str
    cancelled: bool = Field(description="False when it had ended already.")


class ClusterOut(Given):
    name: str
    tools: int
    available: int
    namespaces: list[str]
    auto_approve: bool | Literal["read_only"] | None = None
    """None leaves it to each provider."""


class ClusterPatch(Strict):
    auto_approve: StrictBool | Literal["read_only"] | None = Field(
        description="True asks nobody, false asks for each call, read_only for each that may change something; null "
        "leaves it to each provider."
    )


class ClusterDeleted(Given):
    name: str
    deleted: int


class ProviderOut(Given):
    id: str
    kind: Kind
    address: str
    state: Literal["starting", "up", "down"]
    era: str | None
    latency_ms: float | None
    last_error: str | None
    tool_count: int
    skipped: list[str] = Field(description="Tools that were left out of the catalog, each with the reason.")
    since: Time
    required: bool
    retry_at: Time | None
    declared: bool = Field(description="In the manifest: to be changed there.")
    config: JsonMap | None = Field(description="As in the manifest; secrets show as `***`.")


class ServerOut(Given):
    id: str
    tools: list[str]
    names: Literal["direct", "bare"]
    agent_mode: bool
    retrieve_skill: bool
    skills: list[str]
    title: str | None
    description: str | None
    auto_approve: bool | Literal["read_only"]
    token_in_url: bool
    url: str
    tool_count: int


class ToolMetricsOut(Given):
    tool: str
    calls: int
    failed: int
    success_rate: float
    failure_rate: float
    p50_ms: float | None
    p95_ms: float | None
    result_tokens: int
    schema_tokens: int | None

    @staticmethod
    def of(metrics: ToolMetrics, schema_tokens: int | None) -> ToolMetricsOut:
        return ToolMetricsOut(
            tool=metrics.tool,
            calls=metrics.calls,
            failed=metrics.failed,
            success_rate=round(metrics.success_rate, 6),
            failure_rate=round(1 - metrics.success_rate, 6),
            p50_ms=metrics.p50_ms,
            p95_ms=metrics.p95_ms,
            result_tokens=metrics.result_tokens,
            schema_tokens=schema_tokens,
        )


class KeyBody(Strict):
    name: str = Field(min_length=1, max_length=64)
    scopes: list[Scope] = Field(min_length=1)
    expires: AwareDatetime | None = Field(default=None, description="RFC 3339; never, when left out.")


class KeyOut(Given):
    id: str
    name: str
    scopes: list[Scope]
    created: Time
    expires: Time | None
    last_used: Time | None
    revoked: Time | None
    live: bool


class KeyMade(KeyOut):
    key: str = Field(description="The only copy: it is not stored and cannot be shown again.")


class LoginLink(Given):
    url: str = Field(description="The only copy: it is not stored and cannot be shown again.")
    expires: Time


class ImportBody(Strict):
    """One of `url` and `document`."""

    url: str | None = Field(default=None, max_length=4000, description="An http or https address.")
    document: str | JsonMap | None = Field(
        default=None, description="The document itself: JSON or YAML text, or an object."
    )
    cluster: str | None = Field(default=None, min_length=1, max_length=200, description="Else the document's title.")
    provider_id: str | None = Field(default=None, max_length=64, description="Else made from the cluster.")
    base_url: str | None = Field(default=None, max_length=4000, description="Instead of the document's servers.")
    headers: dict[str, str] | None = Field(default=None, description="Sent with every call; never shown again.")


class Repair(Given):
    pointer: str
    what: str


class ImportReportOut(Given):
    imported: int
    repaired: list[Repair]
    dropped: list[Repair]
    needs: list[str] = Field(description="What an operator has to add before a first call works.")


class ImportedTool(Given):
    id: str
    name: str
    description: str
    method: str | None
    path: str | None


class ImportOut(Given):
    cluster: str
    provider: str
    tools: list[ImportedTool]
    report: ImportReportOut
