"""An imported operation as data: what goes where on the wire."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

ParameterPlace: TypeAlias = Literal["path", "query", "header", "cookie", "body"]
Style: TypeAlias = Literal[
    "", "simple", "label", "matrix", "form", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject"
]
Raw: TypeAlias = Literal["", "bytes", "base64"]
"""A string that stands for bytes: decoded before it is sent, or sent as the base64 text it is."""
BodyKind: TypeAlias = Literal["json", "ndjson", "form", "multipart", "text", "bytes", "base64", "any"]


class Argument(msgspec.Struct, frozen=True, omit_defaults=True):
    """One argument of a tool. `key` is what a model writes, `name` what the API calls it.

    `media_type` is set for a parameter that is a document of its own (`content`), and for a body field whose
    `encoding` names a type. A body field without `style` follows its media type's default.
    """

    key: str
    place: ParameterPlace
    name: str
    style: Style = ""
    explode: bool = False
    allow_reserved: bool = False
    media_type: str = ""
    raw: Raw = ""


class Body(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the body is written. `whole` names the one argument that is all of it; otherwise its fields are arguments.

    `choices` are other media types of the same kind that the value may ask for (JSON patches).
    """

    kind: BodyKind
    media_type: str
    whole: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()


class Operation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One operation of the document, which is one tool.

    `key` is `METHOD path` as the document has it, and identifies the operation over re-imports. `server` is the
    absolute address it goes to, `""` when the document names none. `root` (JSON) and `refs` make the
    input schema.
    """

    key: str
    name: str
    method: str
    path: str
    server: str
    description: str
    root: bytes
    refs: tuple[str, ...] = ()
    arguments: tuple[Argument, ...] = ()
    body: Body | None = None
    fixed_headers: tuple[tuple[str, str], ...] = ()
    idempotency_header: str = ""
    accept: str = "*/*"
    title: str = ""
    operation_id: str = ""
    tags: tuple[str, ...] = ()
