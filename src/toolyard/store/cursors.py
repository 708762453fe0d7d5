"""Where the next page of a list begins: the time and id of the last row that was given out."""

from __future__ import annotations

import base64
import binascii

import orjson

from toolyard.core.errors import BadInput


def write_cursor(created: float, last_id: str) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([created, last_id])).decode().rstrip("=")


def read_cursor(cursor: str) -> tuple[float, str]:
    """
    Raises:
        BadInput: the cursor is not one of ours.
    """
    try:
        created, last_id = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        return float(created), str(last_id)
    except (binascii.Error, ValueError, TypeError) as error:
        raise BadInput(
            "This cursor is not one that we gave out.", where="cursor", suggestion="Start again without a cursor."
        ) from error
