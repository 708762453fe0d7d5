"""Which credentials a document asks for. Filling them in is the connection's business."""

from __future__ import annotations

from collections.abc import Iterable

from toolyard.providers.openapi.nodes import ROOT, Node, as_list, as_object, as_text
from toolyard.providers.openapi.references import Document
from toolyard.providers.openapi.report import Findings


class Security:
    """The security schemes of a document. `api_keys` are the (place, lower-case name) pairs that carry one."""

    def __init__(self, document: Document, findings: Findings) -> None:
        root = document.root
        self._findings = findings
        home, place = (
            (root.get("securityDefinitions"), ROOT.child("securityDefinitions"))
            if "swagger" in root
            else (as_object(root.get("components")).get("securitySchemes"), ROOT.child("components", "securitySchemes"))
        )
        self._schemes: dict[str, Node] = {}
        for name, node in as_object(home).items():
            found = document.follow(place.child(name), node)
            if found is not None:
                self._schemes[name] = as_object(found.node)
        self._needed = _names(as_list(root.get("security")))
        self.api_keys = frozenset(
            (as_text(scheme.get("in")), as_text(scheme.get("name")).lower())
            for scheme in self._schemes.values()
            if scheme.get("type") == "apiKey"
        )

    def described(self) -> tuple[str, ...]:
        """Each scheme in words: `apiKey in header X-Key`."""
        return tuple(_in_words(scheme) for scheme in self._schemes.values())

    def note_needs(self) -> None:
        schemes = [name for name in self._schemes if not self._needed or name in self._needed]
        if schemes:
            ways = " or ".join(dict.fromkeys(_in_words(self._schemes[name]) for name in schemes))
            self._findings.needs(f"credentials: {ways}")


def _names(requirements: Iterable[object]) -> set[str]:
    return {name for requirement in requirements for name in as_object(requirement)}


def _in_words(scheme: Node) -> str:
    kind = as_text(scheme.get("type")) or "unknown"
    if kind == "apiKey":
        return f"API key in {as_text(scheme.get('in'))} {as_text(scheme.get('name'))}"
    if kind == "http":
        return f"HTTP {as_text(scheme.get('scheme')).lower()}"
    return {"basic": "HTTP basic", "oauth2": "OAuth 2", "openIdConnect": "OpenID Connect"}.get(kind, kind)
