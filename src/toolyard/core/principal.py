"""Who is calling, and what a key may do."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from toolyard.core.errors import Forbidden


class Scope(StrEnum):
    """What a key may be allowed. `admin` includes all the others."""

    CALL = "call"
    """See the catalog and call tools, through every face."""
    READ = "read"
    """Read the audit log, metrics and the state of providers."""
    MANAGE = "manage"
    """Import and remove tools, change providers, servers and settings."""
    APPROVE = "approve"
    """Decide the approvals of others' calls."""
    ADMIN = "admin"
    """Make and revoke keys, and everything else."""


ALL_SCOPES = frozenset(Scope)


class PrincipalKind(StrEnum):
    KEY = "key"
    USER = "user"
    OPERATOR = "operator"
    LOCAL = "local"
    """Somebody on this machine: the CLI, stdio, or demo mode on loopback."""


@dataclass(frozen=True, slots=True)
class Principal:
    kind: PrincipalKind
    id: str
    name: str
    scopes: frozenset[Scope] = frozenset()
    label: str = field(init=False, compare=False)
    """How the audit log names the caller: `key:ci`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", f"{self.kind}:{self.name}")

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def require(self, scope: Scope) -> None:
        """
        Raises:
            Forbidden: the principal lacks the scope.
        """
        if not self.may(scope):
            raise Forbidden(
                f"This needs the scope '{scope}', which {self.label} does not have.",
                suggestion="Ask an operator for a key with that scope.",
            )


LOCAL_OPERATOR = Principal(PrincipalKind.LOCAL, "local", "local", ALL_SCOPES)
