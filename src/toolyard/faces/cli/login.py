"""`toolyard login-link`: another way in to the console, through a running yard or straight in its database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from toolyard.core.json import JsonObject
from toolyard.faces.cli.keys import through
from toolyard.faces.cli.options import DEFAULT_URL, AsJson, Database, NamedDataDir, Url
from toolyard.faces.cli.output import note, print_json, print_text
from toolyard.faces.cli.yard import Yard

if TYPE_CHECKING:
    from toolyard.store.base import Store


def login_link(
    *,
    public_url: Annotated[
        str, typer.Option(help="Where people reach the console; asked of the yard itself where one runs.")
    ] = DEFAULT_URL,
    url: Url = DEFAULT_URL,
    database: Database = None,
    data_dir: NamedDataDir = None,
    as_json: AsJson = False,
) -> None:
    """Print a link that logs an operator in to the console, once, within the hour.

    A running yard wants a key with the scope admin. Without one, stop the yard and make the link in its database.
    """

    async def ask(yard: Yard) -> JsonObject:
        return await yard.post("/v1/login-links", {})

    async def make(store: Store) -> JsonObject:
        from toolyard.identity.operators import Operators

        return {"url": await Operators(store).new_link(public_url)}

    made = through(url, database, data_dir, ask, make)
    if as_json:
        print_json(made)
        return
    print_text(str(made["url"]))
    note("It works once, within the hour.")
