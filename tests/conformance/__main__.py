"""`python -m tests.conformance [--json FILE] [--only WORD]`: every run of the official suite, and a table of them.

It ends with 1 when a check fails that is not known to, or when one that is known to fail passes by now.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal

import orjson

from tests.conformance import yard
from tests.conformance.known import KNOWN, NOT_RUN
from tests.conformance.sdk_server import everything
from tests.conformance.suite import REVISIONS, Report, against_client, against_server, one_scenario

SKILLS = ("sep-2640-skills-enumeration", "sep-2640-skills-manifest", "sep-2640-skills-directory")
ERAS: dict[str, Literal["legacy", "modern"]] = {"2025-11-25": "legacy", "2026-07-28": "modern"}
CLIENT = f"{sys.executable} -m tests.conformance.client"


@asynccontextmanager
async def addresses(folder: Path) -> AsyncGenerator[dict[str, str], None]:
    """What the suite is run against, by title: our fixtures, and a yard in front of them and of the SDK's server."""
    async with AsyncExitStack() as stack:
        own = await stack.enter_async_context(yard.own(folder / "own"))
        found = {"own fixtures": own}
        for revision, era in ERAS.items():
            front = yard.in_front_of(own, era, folder / era)
            found[f"through us, {revision} behind"] = await stack.enter_async_context(front)
            front = yard.in_front_of(await stack.enter_async_context(everything()), era, folder / f"sdk-{era}")
            found[f"through us, SDK server of {revision} behind"] = await stack.enter_async_context(front)
        yield found


async def runs(folder: Path, only: str) -> list[Report]:
    reports: list[Report] = []

    def show(report: Report) -> None:
        reports.append(report)
        passed, made = report.counted(required=True)
        good = not surprises([report])
        print(f"{'ok  ' if good else 'FAIL'} {report.title}: {passed}/{made} required checks", flush=True)

    async def servers(found: dict[str, str]) -> None:
        for title, url in found.items():
            for revision in REVISIONS:
                name = f"server, {revision} client, {title}"
                if only in name and name not in NOT_RUN:
                    show(await against_server(name, url, folder / name, revision=revision))

    async def ours(found: dict[str, str]) -> None:
        await servers({title: url for title, url in found.items() if "SDK" not in title})
        for scenario in SKILLS:
            if only in scenario:
                show(await one_scenario(scenario, found["own fixtures"], folder / scenario))

    async def others(found: dict[str, str]) -> None:
        await servers({title: url for title, url in found.items() if "SDK" in title})
        for revision in REVISIONS:
            name = f"client, {revision}"
            if only in name:
                show(await against_client(name, CLIENT, folder / name, revision=revision))

    async with addresses(folder) as found, asyncio.TaskGroup() as both:
        both.create_task(ours(found))
        both.create_task(others(found))
    return sorted(reports, key=lambda report: (report.title.startswith("client"), "SDK" in report.title))


def surprises(reports: list[Report]) -> list[str]:
    """What failed unexpectedly, and what is expected to fail and does not."""
    found: list[str] = []
    for report in reports:
        known = KNOWN.get(report.title, {})
        failed = report.failures
        found += [
            f"{report.title}: {name}: {why}" for name, all_of in failed.items() if name not in known for why in all_of
        ]
        ran = {one.name for one in report.scenarios}
        found += [f"{report.title}: {name} passes by now" for name in known if name in ran and name not in failed]
        if not report.ok and not failed:
            found.append(f"{report.title}: {report.output[-2000:]}")
    return found


def table(reports: list[Report]) -> str:
    lines = ["| run | required checks | other checks | skipped |", "|---|---|---|---|"]
    for report in reports:
        required, other = report.counted(required=True), report.counted(required=False)
        skipped = sum(one.skipped for one in report.scenarios)
        lines.append(f"| {report.title} | {required[0]} of {required[1]} | {other[0]} of {other[1]} | {skipped} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--json", type=Path, help="write the whole report there")
    parser.add_argument("--only", default="", help="only runs whose title holds this")
    arguments = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="toolyard-conformance-") as folder:
        reports = asyncio.run(runs(Path(folder), arguments.only))
    print(f"\n{table(reports)}\n\n{time.monotonic() - began:.0f} s")
    for what, why in NOT_RUN.items():
        print(f"not run: {what}: {why}")
    for title, scenarios in KNOWN.items():
        for name, why in scenarios.items():
            print(f"known to fail: {title}: {name}: {why}")
    if arguments.json is not None:
        arguments.json.write_bytes(
            orjson.dumps(
                {"runs": [one.to_wire() for one in reports], "not_run": NOT_RUN, "known": KNOWN},
                option=orjson.OPT_INDENT_2,
            )
        )
    wrong = surprises(reports)
    for one in wrong:
        print(one)
    return 1 if wrong or not reports else 0


if __name__ == "__main__":
    sys.exit(main())
