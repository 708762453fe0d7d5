"""A stdio MCP server on the standard library that behaves as it is told: `stdio_server.py [behaviour ...]`.

Behaviours: `legacy` (no discover), `modern` (no initialize), `mute-probe` (never answers discover), `noisy` (prints
what is no JSON), `deaf` (ignores stdin's end and SIGTERM), `brood` (starts children, one of which leaves the group),
`slow-start` (takes a second).
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

BEHAVIOURS = set(sys.argv[1:])
TOOLS = ["echo", "die", "hang", "env", "long", "stderr", "change", "progress", "ask"]
SLEEP = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
extra: list[str] = []
declared: dict = {}


def send(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(request_id: object, result: object) -> None:
    send({"jsonrpc": "2.0", "id": request_id, "result": result})


def refuse(request_id: object, code: int, message: str) -> None:
    send({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}})


def call(request_id: object, name: str, params: dict) -> None:
    text = "ok"
    match name:
        case "die":
            print("I am dying", file=sys.stderr, flush=True)
            os._exit(3)
        case "hang":
            return
        case "env":
            text = json.dumps(dict(os.environ))
        case "long":
            sys.stdout.write(f'{{"id":{request_id},"result":"' + "x" * 11_000_000)
            text = "x"
        case "stderr":
            sys.stderr.buffer.write(b"one\ntwo \xff\n" + b"y" * 10_000 + b"\n")
            sys.stderr.flush()
        case "change":
            extra.append(f"extra{len(extra)}")
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        case "progress":
            token = params["_meta"]["progressToken"]
            report = {"progressToken": token, "progress": 1, "total": 2, "message": "half"}
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": report})
        case "ask":
            form = {"mode": "form", "message": "Name?", "requestedSchema": {"type": "object", "properties": {}}}
            send({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": form})
            said = json.loads(sys.stdin.readline())
            text = json.dumps([declared, said.get("result") or said["error"]["code"]])
        case _:
            text = json.dumps(params.get("arguments"), ensure_ascii=False)
    answer(request_id, {"content": [{"type": "text", "text": text}]})


def handle(message: dict) -> None:
    method, request_id, params = message.get("method"), message.get("id"), message.get("params", {})
    match method:
        case "server/discover" if "mute-probe" in BEHAVIOURS:
            return
        case "server/discover" if not BEHAVIOURS & {"legacy"}:
            capabilities = {"tools": {"listChanged": True}}
            answer(request_id, {"supportedVersions": ["2026-07-28"], "capabilities": capabilities})
        case "initialize" if "modern" not in BEHAVIOURS:
            declared.update(params["capabilities"])
            answer(request_id, {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}})
        case "tools/list":
            names = [*TOOLS, *extra]
            answer(request_id, {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]})
        case "tools/call":
            call(request_id, params["name"], params)
        case "ping":
            answer(request_id, {})
        case "notifications/cancelled":
            print(f"cancelled {params['requestId']}", file=sys.stderr, flush=True)
        case "subscriptions/listen":
            return
        case _ if request_id is not None:
            refuse(request_id, -32601, f"no method {method}")


def brood() -> None:
    """A child in our group and one that left it; both ignore SIGTERM. Their ids go to stderr."""
    children = [
        subprocess.Popen([sys.executable, "-c", SLEEP], start_new_session=leaves, stdin=subprocess.DEVNULL)
        for leaves in (False, True)
    ]
    print("brood", *(child.pid for child in children), os.getpid(), file=sys.stderr, flush=True)


if "brood" in BEHAVIOURS:
    brood()
if "slow-start" in BEHAVIOURS:
    time.sleep(1)
if "deaf" in BEHAVIOURS:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "noisy" in BEHAVIOURS:
    print("Welcome to the server!\n\n[1, 2]", flush=True)
for line in sys.stdin:
    handle(json.loads(line))
if "deaf" in BEHAVIOURS:
    threading.Event().wait(600)
    time.sleep(600)
