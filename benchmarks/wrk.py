"""Drive an MCP endpoint with wrk, checking every reply, and read the CPU time of a process tree."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

_SCRIPT = """
wrk.method = "POST"
local req
function init(args) req = wrk.format("POST", {path}, {headers}, {body}) end
function request() return req end
bad = 0
first = ""
function response(status, headers, body)
  if status ~= 200 or not string.find(body, {marker}, 1, true) or string.find(body, '"isError":true', 1, true) then
    bad = bad + 1
    if first == "" then first = status .. " " .. string.sub(body, 1, 200) end
  end
end
local threads = {{}}
function setup(thread) table.insert(threads, thread) end
function done(summary, latency, requests)
  local b, f = 0, ""
  for _, t in ipairs(threads) do b = b + t:get("bad"); if t:get("first") ~= "" then f = t:get("first") end end
  io.write(string.format("RESULT %d %d %d %d %.1f %.1f %.1f\\n", summary.requests, summary.duration, b,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout,
    latency:percentile(50), latency:percentile(99), latency.max))
  if f ~= "" then io.write("BAD " .. f:gsub("\\n", " ") .. "\\n") end
end
"""


class WrkMissing(RuntimeError):
    pass


@dataclass(frozen=True, slots=True)
class Load:
    """One run: calls, calls per second, and latencies in milliseconds."""

    calls: int
    rate: float
    p50_ms: float
    p99_ms: float


def drive(
    url: str,
    headers: dict[str, str],
    body: object,
    *,
    callers: int,
    seconds: float,
    marker: str,
    cpu: int | None = None,
) -> Load:
    """
    Raises:
        WrkMissing: there is no wrk; on Debian it is the package of that name.
        RuntimeError: a reply was not what it should be.
    """
    wrk = shutil.which("wrk")
    if wrk is None:
        raise WrkMissing("wrk is needed (Debian package 'wrk')")
    path = "/" + url.split("/", 3)[3]
    script = _SCRIPT.format(
        path=_lua(path),
        headers="{" + ",".join(f"[{_lua(name)}]={_lua(value)}" for name, value in headers.items()) + "}",
        body=_lua(json.dumps(body)),
        marker=_lua(marker),
    )
    pinned = ["taskset", "-c", str(cpu)] if cpu is not None and shutil.which("taskset") else []
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        command = [
            *pinned,
            wrk,
            "-t1",
            f"-c{callers}",
            f"-d{max(1, round(seconds))}s",
            "--timeout",
            "10s",
            "-s",
            file.name,
            url,
        ]
        output = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60, check=True).stdout
    found = re.search(r"RESULT (.+)", output)
    if found is None:
        raise RuntimeError(output)
    calls, microseconds, bad, sockets, p50, p99, _ = (float(part) for part in found[1].split())
    if bad or sockets:
        raise RuntimeError(f"{bad:.0f} bad replies, {sockets:.0f} socket errors: {output[-400:]}")
    return Load(int(calls), calls / (microseconds / 1e6), p50 / 1000, p99 / 1000)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and its children, in seconds (Linux)."""
    total = 0
    waiting = [pid]
    while waiting:
        process = waiting.pop()
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
            for task in os.listdir(f"/proc/{process}/task"):
                waiting += [int(child) for child in Path(f"/proc/{process}/task/{task}/children").read_text().split()]
        except OSError:
            continue
    return total / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    """Resident memory of one process in MB (Linux)."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def _lua(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
