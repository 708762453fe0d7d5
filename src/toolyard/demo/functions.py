"""Three Python functions as tools: what `@toolyard.tool` needs is a typed function and its docstring."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from datetime import date, timedelta

import toolyard

_WORD = re.compile(r"[^\W\d_]+(?:['\N{RIGHT SINGLE QUOTATION MARK}-][^\W\d_]+)*")
_SENTENCE_END = re.compile(r"[.!?]+(?=\s|$)")
_WORDS_A_MINUTE = 230


@dataclass(frozen=True)
class TextStatistics:
    characters: int
    words: int
    distinct_words: int
    sentences: int
    longest_word: str
    reading_minutes: float


@dataclass(frozen=True)
class WorkingDay:
    day: date
    weekday: str
    calendar_days: int


@toolyard.tool(read_only=True, title="Text statistics", tags=("text",))
def text_statistics(text: str) -> TextStatistics:
    """Count the characters, words and sentences of a text.

    Args:
        text: Any text, in any language that puts blanks between words.
    """
    words = _WORD.findall(text)
    return TextStatistics(
        characters=len(text),
        words=len(words),
        distinct_words=len({word.casefold() for word in words}),
        sentences=max(len(_SENTENCE_END.findall(text)), 1 if words else 0),
        longest_word=max(words, key=len, default=""),
        reading_minutes=round(len(words) / _WORDS_A_MINUTE, 2),
    )


@toolyard.tool(read_only=True, title="Add working days", tags=("date",))
def add_working_days(start: date, days: int) -> WorkingDay:
    """Find the date that is a number of working days (Monday to Friday) after or before a date.

    Args:
        start: The date to count from, such as 2026-11-20.
        days: How many working days; negative counts backwards. At most 10000 either way.
    """
    if abs(days) > 10_000:
        raise toolyard.ToolError(f"{days} working days are too many.", suggestion="Use -10000 to 10000.")
    step = timedelta(days=1 if days >= 0 else -1)
    day, left = start, abs(days)
    try:
        while left:
            day += step
            left -= day.weekday() < 5
    except OverflowError:
        raise toolyard.ToolError("That is beyond the years 1 to 9999.") from None
    return WorkingDay(day=day, weekday=f"{day:%A}", calendar_days=(day - start).days)


@toolyard.tool(read_only=True, title="Count down", tags=("time",))
async def countdown(context: toolyard.Context, seconds: float = 3.0) -> str:
    """Count down to zero, reporting progress on the way. It can be cancelled.

    Args:
        seconds: How long it takes, from 0 to 60.
    """
    if not 0 <= seconds <= 60:
        raise toolyard.ToolError("A countdown takes 0 to 60 seconds.", suggestion="Give seconds from 0 to 60.")
    steps = max(1, round(seconds * 4))
    for step in range(steps):
        context.progress(step, steps, f"{seconds - step * seconds / steps:.2f} s to go")
        await asyncio.sleep(seconds / steps)
    context.progress(steps, steps, "done")
    return f"Lift-off after {seconds:g} s."
