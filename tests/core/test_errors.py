"""The tree of errors: what they say, and that its drawing is true."""

from __future__ import annotations

import re

from toolyard.core import errors
from toolyard.core.errors import (
    AddressRefused,
    BadInput,
    CallError,
    EgressError,
    ErrorCode,
    ManifestError,
    NotFound,
    StoreTooNew,
    ToolyardError,
)


def test_an_error_says_what_is_wrong_and_what_to_do() -> None:
    assert str(NotFound("There is no call x.")) == "There is no call x."
    error = StoreTooNew("It is too new.", suggestion="Install a newer Toolyard.")
    assert str(error) == "It is too new. Install a newer Toolyard."
    assert (error.message, error.suggestion) == ("It is too new.", "Install a newer Toolyard.")


def test_a_mistake_in_a_manifest_says_where_it_is() -> None:
    error = ManifestError("must be 1 to 65535.", file="yard.yaml", line=7, field="mcps[0].port", suggestion="Try 443.")
    assert str(error) == "yard.yaml:7: mcps[0].port: must be 1 to 65535. Try 443."
    assert str(ManifestError("is empty.", file="yard.yaml", line=None, field="mcps")) == "yard.yaml: mcps: is empty."
    assert (error.where, error.file, error.line) == ("mcps[0].port", "yard.yaml", 7)


def test_errors_carry_what_their_readers_need() -> None:
    assert BadInput("no", where="limit").where == "limit"
    assert CallError(ErrorCode.DENIED, "no").code is ErrorCode.DENIED
    assert (EgressError("no", sent=True).sent, AddressRefused("no").sent) == (True, False)


def test_the_tree_in_the_docstring_is_the_tree_in_the_code() -> None:
    drawn: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        branch = re.match(r"([│├└─ ]*)([A-Z]\w+)(?:\s{2,}|$)", line)
        if branch:
            depth = len(branch[1]) // 4
            path[depth:] = [branch[2]]
            if depth:
                drawn[branch[2]] = path[depth - 1]

    def subclasses(of: type[ToolyardError]) -> dict[str, str]:
        found: dict[str, str] = {}
        for child in of.__subclasses__():
            if child.__module__ == errors.__name__:
                found |= {child.__name__: of.__name__, **subclasses(child)}
        return found

    assert drawn == subclasses(ToolyardError)
