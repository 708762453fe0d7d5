"""URLs as they may be shown: without user, password, query and fragment."""

from __future__ import annotations

from urllib.parse import urlsplit


def without_secrets(url: str) -> str:
    """`https://u:p@h:8443/a?key=1#x` -> `https://h:8443/a?...`. What cannot be parsed shows nothing of itself."""
    try:
        parts = urlsplit(url)
        host = authority(url)
    except ValueError:
        return "(unreadable URL)"
    return f"{parts.scheme}://{host}{parts.path}{'?...' if parts.query else ''}"


def authority(url: str) -> str:
    """`host` or `host:port`, without user information. Raises `ValueError` for a bad port or bracket."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    return f"{host}:{parts.port}" if parts.port is not None else host
