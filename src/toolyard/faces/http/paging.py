"""Opaque cursors for lists that are read from memory, sorted by id."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TypeVar

from pydantic import Field

from toolyard.core.errors import BadInput
from toolyard.faces.http.validation import Strict

T = TypeVar("T")
LARGEST_PAGE = 500


class Page(Strict):
    """The parameters of every list."""

    limit: int = Field(default=50, ge=1, le=LARGEST_PAGE, description="Items per page.")
    cursor: str | None = Field(default=None, max_length=2000, description="`next_cursor` of the page before.")


def cut(items: Sequence[T], page: Page, *, key: Callable[[T], str]) -> tuple[list[T], str | None]:
    """The page after the cursor, and the cursor of the next. `items` are sorted by `key`.

    A cursor names the last item that was given, so items that come or go in between shift nothing.

    Raises:
        BadInput: a cursor that is not ours.
    """
    after = _decode(page.cursor) if page.cursor else None
    rest = items if after is None else [item for item in items if key(item) > after]
    found = list(rest[: page.limit])
    return found, _encode(key(found[-1])) if len(rest) > page.limit else None


def _encode(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def _decode(cursor: str) -> str:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError) as error:
        raise BadInput(
            "The cursor is not one of ours.", where="cursor", suggestion="Use 'next_cursor' of the page before."
        ) from error
