from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "toolyard"
CLIENTS = {
    "ClientSession", "TCPConnector", "AsyncHTTPTransport", "HTTPTransport", "AsyncConnectionPool", "ConnectionPool",
    "HTTPConnection", "HTTPSConnection", "PoolManager", "urlopen", "urlretrieve", "create_connection",
    "open_connection", "create_mcp_http_client",
}  # fmt: skip
CLIENTS_OF_HTTPX = {"AsyncClient", "Client"}


def clients_built_in(source: str) -> list[str]:
    """Calls that make an outbound HTTP client or connection, as `line: name`."""
    tree = ast.parse(source)
    libraries = {"httpx", "httpx2"}
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in libraries
        for alias in node.names
    }
    found: list[str] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                guilty = name in CLIENTS or (
                    owner in libraries and name in {*CLIENTS_OF_HTTPX, "get", "post", "stream"}
                )
            case ast.Attribute(attr=name):
                guilty = name in CLIENTS
            case ast.Name(id=name):
                guilty = name in CLIENTS or (name in imported and name in CLIENTS_OF_HTTPX)
            case _:
                continue
        if guilty:
            found.append(f"{node.lineno}: {name}")
    return found


def test_no_outbound_client_is_built_outside_egress() -> None:
    guilty = {
        f"{path.relative_to(SOURCE)}:{place}"
        for path in SOURCE.rglob("*.py")
        if "egress" not in path.relative_to(SOURCE).parts
        for place in clients_built_in(path.read_text())
    }
    assert guilty == set()


@pytest.mark.parametrize(
    "source",
    [
        "import aiohttp\naiohttp.ClientSession()",
        "import httpx2\nhttpx2.AsyncClient()",
        "from httpx2 import AsyncClient\nAsyncClient()",
        "import urllib.request\nurllib.request.urlopen('http://x')",
        "import httpx\nhttpx.get('http://x')",
    ],
)
def test_the_scan_sees_a_client(source: str) -> None:
    assert clients_built_in(source)
