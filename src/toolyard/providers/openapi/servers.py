"""Where an operation is served: the document's servers, with variables filled in and relative ones made absolute."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urljoin, urlsplit

from toolyard.core.json import JsonValue
from toolyard.providers.openapi.nodes import Node, Place, as_list, as_object, as_text, texts
from toolyard.providers.openapi.report import Findings

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_PLACEHOLDER = re.compile(
    r"(^|\.)(localhost|example|example\.(com|org|net)|local|invalid|test)$|^your-|^127\.", re.IGNORECASE
)


class Servers:
    """`main` is the document's own server; path items and operations may name others."""

    def __init__(self, root: Node, document_url: str, findings: Findings) -> None:
        self._document_url = document_url
        self._findings = findings
        declared = _of_swagger(root, document_url) if "swagger" in root else as_list(root.get("servers"))
        self.all = tuple(url for url in (self._resolve(server) for server in declared) if url)
        self.main = self.all[0] if self.all else self._resolve({"url": "/"})

    def of(self, *levels: tuple[JsonValue, Place]) -> str:
        """The first server of the first level that has one (operation, then path item); `""` for the main one."""
        for declared, place in levels:
            if declared is None:
                continue
            for index, server in enumerate(as_list(declared)):
                url = self._resolve(server)
                if url:
                    return "" if url == self.main else url
                self._findings.repaired(place.child(index), "the server cannot be used: it has no absolute address")
        return ""

    def note_needs(self) -> None:
        """Tell what an operator has to say before a first call can work."""
        host = urlsplit(self.main).hostname if self.main and "{" not in self.main else None
        if not host:
            self._findings.needs("a base URL: the document does not say where the API is")
        elif _PLACEHOLDER.search(host):
            self._findings.needs(f"a base URL: the document names only the placeholder {self.main}")
        elif not self.all:
            self._findings.needs(f"a base URL, unless the API is where its document is ({self.main})")

    def _resolve(self, server: JsonValue) -> str:
        node = as_object(server)
        url = as_text(node.get("url")).strip()
        variables = as_object(node.get("variables"))
        url = _VARIABLE.sub(lambda match: _value(match, variables), url)
        try:
            if urlsplit(url).scheme not in ("http", "https"):
                url = urljoin(self._document_url, url) if self._document_url else _without_document(url)
            parts = urlsplit(url)
            return url.rstrip("/") if parts.scheme in ("http", "https") and parts.netloc else ""
        except ValueError:
            return ""


def _value(match: re.Match[str], variables: Node) -> str:
    """A variable's default, else the first of its enum; unknown ones stay visible as `{name}`."""
    variable = as_object(variables.get(match[1]))
    default, choices = variable.get("default"), texts(variable.get("enum"))
    if isinstance(default, bool) or not isinstance(default, str | int | float):
        return choices[0] if choices else match[0]
    return str(default) if not choices or str(default) in choices else choices[0]


def _without_document(url: str) -> str:
    return f"https:{url}" if url.startswith("//") else ""


def _of_swagger(root: Node, document_url: str) -> Sequence[JsonValue]:
    schemes = [scheme for scheme in texts(root.get("schemes")) if scheme in ("http", "https")]
    here = urlsplit(document_url)
    scheme = "https" if "https" in schemes else schemes[0] if schemes else here.scheme or "https"
    host = as_text(root.get("host")) or here.netloc
    base = as_text(root.get("basePath"))
    if not host:
        return []
    return [{"url": f"{scheme}://{host}{'' if base.startswith('/') or not base else '/'}{base}"}]
