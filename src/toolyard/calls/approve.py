"""Step 4: does a human have to decide first? The nearest policy with an opinion decides; every answer has its reason.

| asked in this order | says | meaning |
|---|---|---|
| the tool's setting | `ask`, `never` | an operator decided about this one tool |
| its cluster | true, false, read_only | an operator decided about the group |
| its provider | false, read_only | `auto_approve` of the manifest; true is the default and leaves it to the server |
| the server | false, read_only | the slice through which the call came |

A `pre_` tool needs its user's confirmation besides, whatever the others say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from toolyard.catalog import Entry, Server
from toolyard.core.approval import DEFAULT_APPROVAL_TIMEOUT, AutoApprove, Gate
from toolyard.core.call import CallRequest
from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.names import ToolClass
from toolyard.core.tool import ActionClass, Tool


@dataclass(frozen=True, slots=True)
class ProviderPolicy:
    auto_approve: AutoApprove = True
    approval_timeout: float = DEFAULT_APPROVAL_TIMEOUT
    """Seconds."""


def _no_provider_policy(_: str) -> ProviderPolicy | None:
    return None


@dataclass(frozen=True, slots=True)
class PolicyBook:
    """Where the policies are looked up, fresh for each call."""

    providers: Callable[[str], ProviderPolicy | None] = _no_provider_policy
    clusters: Mapping[str, AutoApprove] = field(default_factory=dict[str, AutoApprove])
    servers: Mapping[str, Server] = field(default_factory=dict[str, Server])


@dataclass(frozen=True, slots=True)
class Verdict:
    """`gates`: who has to decide, each with the reason why they are asked. `reason` says why nobody has to."""

    gates: Mapping[Gate, str]
    reason: str
    timeout: float = DEFAULT_APPROVAL_TIMEOUT
    """Seconds in which to decide."""


_NO_POLICY_ASKS = Verdict({}, "no policy asks for a decision")


def approve(book: PolicyBook, request: CallRequest, entry: Entry) -> Verdict:
    """
    Raises:
        CallError: `denied`, a tool that its user has to confirm was called outside any session.
    """
    asks, reason = operator_policy(book, entry, request.server)
    if not asks and entry.tool.tool_class is not ToolClass.PRE:
        return _NO_POLICY_ASKS if reason is _NO_POLICY_ASKS.reason else Verdict({}, reason)
    gates: dict[Gate, str] = {}
    if entry.tool.tool_class is ToolClass.PRE:
        gates[Gate.USER] = _user_reason(request, entry)
    if asks:
        gates[Gate.OPERATOR] = reason
    return Verdict(gates, reason, _timeout(book, entry))


def operator_policy(book: PolicyBook, entry: Entry, server: str | None) -> tuple[bool, str]:
    """Whether an operator is asked, and which policy says so."""
    setting = entry.settings.approval
    if setting == "ask":
        return True, f"an operator set {entry.id} to ask for each call"
    if setting == "never":
        return False, f"an operator set {entry.id} to ask nobody"
    cluster = book.clusters.get(entry.cluster) if book.clusters else None
    if cluster is not None:
        return _applied(cluster, entry.tool, f"the cluster {entry.cluster!r}")
    provider = book.providers(entry.tool.namespace)
    if provider is not None and provider.auto_approve is not True:
        return _applied(provider.auto_approve, entry.tool, f"the provider {entry.tool.namespace!r}")
    served = book.servers.get(server) if server is not None else None
    if served is not None and served.auto_approve is not True:
        return _applied(served.auto_approve, entry.tool, f"the server {served.id!r}")
    return False, _NO_POLICY_ASKS.reason


def _applied(policy: AutoApprove, tool: Tool, whose: str) -> tuple[bool, str]:
    if policy is True:
        return False, f"{whose} approves every call"
    if policy is False:
        return True, f"{whose} asks for each call"
    if tool.action_class is ActionClass.READ:
        return False, f"{whose} approves what only reads"
    return True, f"{whose} asks for each call that may change something"


def _user_reason(request: CallRequest, entry: Entry) -> str:
    if request.session is None and "elicitation.form" in request.may_ask:
        return f"the name of {entry.id} begins with pre_, so the caller's user confirms each call"
    if request.session is None:
        raise CallError(
            ErrorCode.DENIED,
            f"{entry.id} needs its user's confirmation, and this call belongs to no session in which to ask.",
            suggestion="Call it within a session, or through an MCP client that can show forms (elicitation).",
        )
    return f"the name of {entry.id} begins with pre_, so the session's user confirms each call"


def _timeout(book: PolicyBook, entry: Entry) -> float:
    if entry.settings.approval_timeout is not None:
        return entry.settings.approval_timeout
    provider = book.providers(entry.tool.namespace)
    return DEFAULT_APPROVAL_TIMEOUT if provider is None else provider.approval_timeout
