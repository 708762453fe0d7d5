"""URIs of resources under a server's direct names: the provider's id goes in front of the rest, and comes off again.

`test://static-text` of the provider `crm` is `test://crm/static-text`. A web address stays as it is, since clients may
fetch it themselves.
"""

from __future__ import annotations

_KEPT = frozenset({"http", "https", "data", "skill"})


def in_namespace(namespace: str, uri: str) -> str:
    """The URI as clients of a server with direct names see it. Works for templates too."""
    scheme, colon, rest = uri.partition(":")
    if not colon or scheme.lower() in _KEPT:
        return uri
    slashes = "//" if rest.startswith("//") else ""
    return f"{scheme}:{slashes}{namespace}/{rest[len(slashes) :]}"


def out_of_namespace(uri: str) -> tuple[str, str] | None:
    """The provider's id and its own URI; None for one that names no provider."""
    scheme, colon, rest = uri.partition(":")
    if not colon or scheme.lower() in _KEPT:
        return None
    slashes = "//" if rest.startswith("//") else ""
    namespace, slash, own = rest[len(slashes) :].partition("/")
    return (namespace, f"{scheme}:{slashes}{own}") if slash and namespace else None
