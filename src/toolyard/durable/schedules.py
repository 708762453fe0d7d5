"""Schedules: cron lines in a time zone that insert jobs, exactly once per slot on any number of nodes.

A slot is the local time that a line names. When the clocks go back, the second pass of the repeated hour counts only
for lines whose hour begins with `*`; when they go forward, a slot in the missing hour is moved to its end. So a daily
line fires once on each day.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Literal, TypeAlias, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import orjson

from toolyard.core.errors import BadInput, Conflict
from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.durable.jobs import FOR_UPDATE, NewJob, insert
from toolyard.store.base import Connection, Row

if TYPE_CHECKING:
    from croniter import croniter

log = logging.getLogger("toolyard.durable")

Misfire: TypeAlias = Literal["skip", "once", "all"]
"""What is done about slots that passed while every node was down: nothing, one job, or a job for each."""
LATE = 60.0
"""Seconds after which a slot counts as missed."""
_MOST_AT_ONCE = 100
_COLUMNS = "id, name, cron, tz, kind, input, state, next_fire, last_fire, misfire"


@dataclass(frozen=True, slots=True)
class Schedule:
    """`cron` has five fields. `input` is handed to each job of `kind`, with `scheduled_for` (epoch seconds) added."""

    id: str
    name: str
    cron: str
    tz: str
    kind: str
    input: JsonObject = field(default_factory=dict[str, JsonValue])
    state: Literal["active", "paused"] = "active"
    next_fire: float | None = None
    last_fire: float | None = None
    misfire: Misfire = "once"


@dataclass(frozen=True, slots=True)
class Fired:
    """`sleep`: seconds until the next slot of any schedule; infinite when there is none."""

    job_ids: tuple[str, ...]
    sleep: float


def next_slot(cron: str, tz: str, after: float) -> float:
    """The first slot behind `after`; epoch seconds.

    Raises:
        BadInput: the line or the zone cannot be read, or the line never comes.
    """
    from croniter import CroniterBadCronError, CroniterBadDateError

    try:
        return next(_slots(cron, tz, after))
    except (CroniterBadCronError, CroniterBadDateError) as error:
        raise BadInput(
            f"The cron line {cron!r} cannot be used: {error}.",
            where="cron",
            suggestion="Write five fields: minute hour day month weekday, as in '30 9 * * 1-5'.",
        ) from error


def put(c: Connection, schedule: Schedule) -> Schedule:
    """Add a schedule or replace the one with its id; as it was written, with its next slot counted from now.

    Raises:
        BadInput: the cron line, the zone or the misfire policy.
        Conflict: another schedule has its name.
    """
    if schedule.misfire not in ("skip", "once", "all"):
        raise BadInput(f"{schedule.misfire!r} is no misfire policy.", where="misfire", suggestion="skip, once or all.")
    named = c.execute("SELECT id FROM schedules WHERE name = ?", schedule.name).fetchone()
    if named is not None and named[0] != schedule.id:
        raise Conflict(f"There is another schedule named {schedule.name!r}.")
    slot = next_slot(schedule.cron, schedule.tz, c.now())
    c.execute(
        f"INSERT INTO schedules ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, ?)"
        " ON CONFLICT (id) DO UPDATE SET name = excluded.name, cron = excluded.cron, tz = excluded.tz,"
        " kind = excluded.kind, input = excluded.input, state = excluded.state, next_fire = excluded.next_fire,"
        " misfire = excluded.misfire",
        schedule.id,
        schedule.name,
        schedule.cron,
        schedule.tz,
        schedule.kind,
        dumps(schedule.input).decode(),
        schedule.state,
        slot,
        schedule.misfire,
    )
    written = get(c, schedule.id)
    if written is None:
        raise Conflict(f"The schedule {schedule.id} was deleted meanwhile.")
    return written


def get(c: Connection, schedule_id: str) -> Schedule | None:
    row = c.execute(f"SELECT {_COLUMNS} FROM schedules WHERE id = ?", schedule_id).fetchone()
    return _schedule(row) if row else None


def every(c: Connection) -> list[Schedule]:
    return [_schedule(row) for row in c.execute(f"SELECT {_COLUMNS} FROM schedules ORDER BY name").fetchall()]


def pause(c: Connection, schedule_id: str) -> bool:
    paused = c.execute("UPDATE schedules SET state = 'paused' WHERE id = ? AND state = 'active'", schedule_id)
    return paused.rowcount == 1


def resume(c: Connection, schedule_id: str) -> bool:
    """Slots that passed meanwhile are not made up for."""
    found = _locked(c, schedule_id)
    if found is None or found.state == "active":
        return False
    slot = next_slot(found.cron, found.tz, c.now())
    c.execute("UPDATE schedules SET state = 'active', next_fire = ? WHERE id = ?", slot, schedule_id)
    return True


def remove(c: Connection, schedule_id: str) -> bool:
    return c.execute("DELETE FROM schedules WHERE id = ?", schedule_id).rowcount == 1


def fire_due(c: Connection) -> Fired:
    """Insert the jobs of every slot that has come."""
    now = c.now()
    due = c.execute(
        f"SELECT {_COLUMNS} FROM schedules WHERE state = 'active' AND next_fire <= ? ORDER BY next_fire, id LIMIT ?",
        now,
        _MOST_AT_ONCE,
    ).fetchall()
    inserted: list[str] = []
    for schedule in map(_schedule, due):
        try:
            inserted += _fire(c, schedule, now)
        except BadInput as error:  # as when this machine does not know the zone
            log.error("The schedule %r is paused: %s", schedule.name, error)
            pause(c, schedule.id)
    row = c.execute("SELECT min(next_fire) FROM schedules WHERE state = 'active'").fetchone()
    upcoming = None if row is None else cast("float | None", row[0])
    return Fired(tuple(inserted), float("inf") if upcoming is None else max(0.001, upcoming - now))


def _fire(c: Connection, schedule: Schedule, now: float) -> list[str]:
    """The conditional update lets one node pass, and each slot once."""
    slots = _chosen(schedule, now)
    caught_up = schedule.misfire != "all" or len(slots) < _MOST_AT_ONCE
    moved = c.execute(
        "UPDATE schedules SET next_fire = ?, last_fire = coalesce(?, last_fire)"
        " WHERE id = ? AND state = 'active' AND next_fire = ?",
        next_slot(schedule.cron, schedule.tz, now if caught_up else slots[-1]),
        slots[-1] if slots else None,
        schedule.id,
        schedule.next_fire,
    )
    if moved.rowcount != 1:
        return []
    inserted: list[str] = []
    for slot in slots:
        job_id = f"sched:{schedule.id}:{round(slot)}"
        if insert(c, NewJob(job_id, schedule.kind, {**schedule.input, "scheduled_for": slot})):
            inserted.append(job_id)
    return inserted


def _chosen(schedule: Schedule, now: float) -> list[float]:
    """The slots that get a job: those that are not late, and what the policy says of the others. `all` takes the
    oldest first, so many at once; the rest is due again at once."""
    first = schedule.next_fire or now
    if schedule.misfire == "all":
        return [first, *_between(schedule, first, now)][:_MOST_AT_ONCE]
    in_time = [*([first] if now - first <= LATE else []), *_between(schedule, max(first, now - LATE), now)]
    if in_time or schedule.misfire == "skip":
        return in_time
    return [max(first, _slot_before(schedule, now))]


def _between(schedule: Schedule, after: float, until: float) -> list[float]:
    slots = _slots(schedule.cron, schedule.tz, after)
    return list(islice(takewhile(lambda slot: slot <= until, slots), _MOST_AT_ONCE))


def _slot_before(schedule: Schedule, now: float) -> float:
    from croniter import croniter

    line = croniter(schedule.cron, datetime.fromtimestamp(now, _zone(schedule.tz)))
    return line.get_prev(datetime).timestamp()


def _slots(cron: str, tz: str, after: float) -> Iterator[float]:
    from croniter import croniter

    if len(cron.split()) != 5:
        raise BadInput(f"The cron line {cron!r} does not have five fields.", where="cron")
    lines: croniter = croniter(cron, datetime.fromtimestamp(after, _zone(tz)))
    by_the_hour = cron.split()[1].startswith("*")
    previous = after
    while True:
        slot = lines.get_next(datetime)
        at = slot.timestamp()
        if at > previous and (by_the_hour or slot.fold == 0):
            previous = at
            yield at


def _zone(tz: str) -> ZoneInfo:
    try:
        return ZoneInfo(tz)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadInput(
            f"{tz!r} is no time zone.", where="tz", suggestion="Use a name such as Europe/Berlin, or UTC."
        ) from error


def _locked(c: Connection, schedule_id: str) -> Schedule | None:
    row = c.execute(f"SELECT {_COLUMNS} FROM schedules WHERE id = ?{FOR_UPDATE[c.dialect]}", schedule_id).fetchone()
    return _schedule(row) if row else None


def _schedule(row: Row) -> Schedule:
    columns = list(row)
    columns[5] = orjson.loads(cast("str", columns[5]))
    return Schedule(*columns)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # as the table declares
