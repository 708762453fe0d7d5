"""`python -m benchmarks [NAME ...]`: run benchmarks one after the other; JSON of each into benchmarks/results/."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ALL = ("gateway", "edge", "upstreams", "store", "durable", "catalog", "imports", "coldstart")
RESULTS = Path(__file__).parent / "results"


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in ALL]
    if unknown:
        print(f"unknown benchmark {unknown[0]!r}; there are {', '.join(ALL)}", file=sys.stderr)
        return 2
    RESULTS.mkdir(exist_ok=True)
    failed: list[str] = []
    for name in names or ALL:
        print(f"\n== {name}", flush=True)
        command = [sys.executable, "-m", f"benchmarks.{name}", "--json", str(RESULTS / f"{name}.json")]
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
