"""How long documents take to import, and how much memory: `python -m benchmarks.imports --json out.json`.

Per document, in this order, each in a process of its own: the plain parse (the `json` module, or PyYAML's
`CSafeLoader`), which is the baseline, and our whole import (parse, walk, convert, encode). Seconds are of the work
inside the process; `wall` is what a caller of `import_document` waits, with the worker's start. The documents are read
where they lie, in shared/data/openapi beside the repository, or in the folder given by --documents.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROUNDS = 3
"""Of which the fastest counts: the machine may be busy with other things."""
DOCUMENTS = Path(__file__).parents[2] / "shared" / "data" / "openapi"
MULTI_FILE = "digitalocean/specification/DigitalOcean-public.v2.yaml"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--documents", type=Path, default=DOCUMENTS)
    parser.add_argument("--one", nargs=2, metavar=("MODE", "PATH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.one[0], Path(options.one[1]))))
        return 0
    if not options.documents.is_dir():
        print(f"there are no documents in {options.documents}", file=sys.stderr)
        return 1
    rows = [row(path) for path in documents(options.documents)]
    print_table(rows)
    if options.json:
        setting = {"python": platform.python_version(), "machine": platform.platform(), "rounds": ROUNDS}
        options.json.write_text(json.dumps({"benchmark": "imports", "setting": setting, "rows": rows}, indent=2))
    return 0


def documents(folder: Path) -> list[Path]:
    found = [path for path in folder.iterdir() if path.suffix in (".json", ".yaml", ".yml")]
    several = folder / MULTI_FILE
    return sorted([*found, several] if several.exists() else found, key=lambda path: path.stat().st_size)


def row(path: Path) -> dict[str, Any]:
    parse = min((in_process("parse", path) for _ in range(ROUNDS)), key=lambda each: each["seconds"])
    whole = min((in_process("import", path) for _ in range(ROUNDS)), key=lambda each: each["seconds"])
    return {
        "document": path.name,
        "bytes": path.stat().st_size,
        "parse_seconds": parse["seconds"],
        "import_seconds": whole["seconds"],
        "ratio": round(whole["seconds"] / parse["seconds"], 2),
        "wall_seconds": min(wall(path) for _ in range(ROUNDS)),
        "parse_peak_mb": parse["peak_mb"],
        "peak_mb": whole["peak_mb"],
        **whole["counts"],
    }


def in_process(mode: str, path: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.imports", "--one", mode, str(path)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def measured(mode: str, path: Path) -> dict[str, Any]:
    """Runs in the child: nothing of it is shared with another measurement."""
    counts: dict[str, int] = {}
    if mode == "parse":
        import yaml

        start = time.perf_counter()
        data = path.read_bytes()
        if path.suffix == ".json":
            json.loads(data)
        else:
            yaml.load(data, yaml.CSafeLoader)
        seconds = time.perf_counter() - start
    else:
        import gc

        import msgspec

        from toolyard.providers.openapi.importer import import_data, read_source

        gc.disable()  # as the worker does
        start = time.perf_counter()
        imported = import_data(*read_source(str(path), None, lambda url: b""))
        stored = msgspec.msgpack.encode(imported)
        seconds = time.perf_counter() - start
        report = imported.report
        counts = {
            "tools": report.imported,
            "repaired": len(report.repaired),
            "dropped": len(report.dropped),
            "stored_bytes": len(stored),
        }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": round(seconds, 4), "peak_mb": round(peak, 1), "counts": counts}


def wall(path: Path) -> float:
    from toolyard.egress import Egress
    from toolyard.providers.openapi import DocumentSource, import_document

    async def run() -> float:
        egress = Egress()
        start = time.perf_counter()
        await import_document(DocumentSource.file(path), egress=egress)
        seconds = time.perf_counter() - start
        await egress.close()
        return round(seconds, 4)

    return asyncio.run(run())


def print_table(rows: list[dict[str, Any]]) -> None:
    heads = ("KB", "tools", "repaired", "dropped", "parse s", "import s", "ratio", "wall s", "MB")
    widths = (7, 7, 9, 8, 9, 9, 7, 8, 6)
    print(f"{'document':<32}" + "".join(f"{head:>{width}}" for head, width in zip(heads, widths, strict=True)))
    for each in rows:
        print(
            f"{each['document'][:31]:<32}{each['bytes'] // 1000:>7}{each['tools']:>7}{each['repaired']:>9}"
            f"{each['dropped']:>8}{each['parse_seconds']:>9.3f}{each['import_seconds']:>9.3f}{each['ratio']:>7.1f}"
            f"{each['wall_seconds']:>8.2f}{each['peak_mb']:>6.0f}"
        )


if __name__ == "__main__":
    sys.exit(main())
