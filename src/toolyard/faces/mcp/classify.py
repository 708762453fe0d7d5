"""Which era a request belongs to, decided from that request alone (notes: the edge, step 3).

| method | `_meta` version | version header | session id | era |
|---|---|---|---|---|
| any | present | - | ignored | modern with that version |
| initialize | absent | any | any | legacy |
| any | absent | modern | - | refused, -32602: the body lacks its `_meta` |
| any | absent | unknown | - | refused, -32022 with the versions served |
| any | absent | legacy or none | present | legacy |
| any | absent | legacy or none | absent | refused, naming both ways in |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolyard.faces.mcp.wire import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    LEGACY_VERSIONS,
    META_CAPABILITIES,
    META_VERSION,
    MODERN_VERSIONS,
    UNSUPPORTED_VERSION,
    Era,
    RpcError,
    as_object,
)

Meta = Mapping[str, Any]
NO_META: Meta = {}


@dataclass(frozen=True, slots=True)
class Route:
    """`version` is None for a legacy request without a version header: its session says which."""

    era: Era
    version: str | None


LEGACY_UNVERSIONED = Route(Era.LEGACY, None)
_LEGACY = {version.encode(): Route(Era.LEGACY, version) for version in LEGACY_VERSIONS}
_MODERN_HEADERS = frozenset(version.encode() for version in MODERN_VERSIONS)


def params_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """
    Raises:
        RpcError: `params` is neither absent nor an object.
    """
    params = message.get("params")
    if params is None:
        return {}
    found = as_object(params)
    if found is None:
        raise RpcError(INVALID_PARAMS, "params must be an object.", status=400)
    return found


def meta_of(params: Mapping[str, Any]) -> Meta:
    """
    Raises:
        RpcError: `_meta` is neither absent nor an object.
    """
    meta = params.get("_meta")
    if meta is None:
        return NO_META
    found = as_object(meta)
    if found is None:
        raise RpcError(INVALID_PARAMS, "params._meta must be an object.", status=400)
    return found


def is_modern(version: bytes | None) -> bool:
    """Whether a version header alone says modern: what GET, DELETE and notifications are told apart by."""
    return version in _MODERN_HEADERS


def classify(method: str, meta: Meta, version: bytes | None, session_id: bytes | None) -> Route:
    """
    Raises:
        RpcError: the request belongs to neither era.
    """
    if META_VERSION in meta:
        return Route(Era.MODERN, _text(meta[META_VERSION]))
    if method == "initialize":
        return LEGACY_UNVERSIONED
    if is_modern(version):
        raise RpcError(
            INVALID_PARAMS,
            f"params._meta must hold {META_VERSION!r} and {META_CAPABILITIES!r} in every modern request.",
            status=400,
        )
    route = LEGACY_UNVERSIONED if version is None else _LEGACY.get(version)
    if route is None:
        raise unsupported((version or b"").decode("latin-1"), (*MODERN_VERSIONS, *LEGACY_VERSIONS))
    if session_id is None:
        raise RpcError(
            INVALID_REQUEST,
            f"Begin with initialize and send the Mcp-Session-Id it gives, or put {META_VERSION!r} into params._meta.",
            status=400,
        )
    return route


def capabilities_in(meta: Meta) -> Mapping[str, Any]:
    """The capabilities that a modern request declares for itself.

    Raises:
        RpcError: there are none.
    """
    capabilities = as_object(meta.get(META_CAPABILITIES))
    if capabilities is None:
        raise RpcError(INVALID_PARAMS, f"params._meta must hold {META_CAPABILITIES!r}, an object.", status=400)
    return capabilities


def check_version(route: Route) -> str:
    """
    Raises:
        RpcError: a modern version that is not served (-32022).
    """
    if route.version not in MODERN_VERSIONS:
        raise unsupported(route.version or "", MODERN_VERSIONS)
    return route.version


def unsupported(requested: str, supported: tuple[str, ...]) -> RpcError:
    return RpcError(
        UNSUPPORTED_VERSION,
        "This protocol version is not served.",
        {"supported": list(supported), "requested": requested},
        status=400,
    )


def _text(version: object) -> str:
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"{META_VERSION!r} must be a string.", status=400)
    return version
