"""`toolyard keys`: API keys, through a running yard or, where none runs, straight in its database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from toolyard.core.clock import rfc3339
from toolyard.core.errors import BadInput, Unauthenticated
from toolyard.core.json import JsonObject
from toolyard.core.principal import Scope
from toolyard.faces.cli.failures import NoYard
from toolyard.faces.cli.options import (
    DEFAULT_DATA_DIR,
    DEFAULT_URL,
    AsJson,
    Database,
    NamedDataDir,
    Url,
    database_location,
)
from toolyard.faces.cli.output import note, print_json, print_table, print_text, texts
from toolyard.faces.cli.yard import Yard, segment, with_yard

if TYPE_CHECKING:
    from toolyard.identity.keys import KeyInfo, Keys
    from toolyard.store.base import Store

group = typer.Typer(no_args_is_help=True, help="Create, list and revoke API keys.")
T = TypeVar("T")

_FIRST_KEY = (
    "Set TOOLYARD_KEY to a key with the scope admin. The first one is made at the console, or with this command "
    "while no yard runs."
)


@group.command("create")
def create(
    name: Annotated[str, typer.Argument(help="For people: who or what uses it.")],
    *,
    scope: Annotated[
        list[Scope] | None, typer.Option("--scope", "-s", help="What it may do; repeatable. Default: call.")
    ] = None,
    days: Annotated[int | None, typer.Option(min=1, max=36_500, help="Days until it expires; never without.")] = None,
    url: Url = DEFAULT_URL,
    database: Database = None,
    data_dir: NamedDataDir = None,
    as_json: AsJson = False,
) -> None:
    """Create a key and print it, once. Works on the database where no yard runs, so for a first key too."""
    scopes = sorted({item.value for item in scope or [Scope.CALL]})
    expires = datetime.now(UTC) + timedelta(days=days) if days else None

    async def ask(yard: Yard) -> JsonObject:
        body = {"name": name, "scopes": scopes, "expires": expires.isoformat() if expires else None}
        return await yard.post("/v1/keys", body)

    async def make(store: Store) -> JsonObject:
        info, secret = await _keys(store).create(
            name, {Scope(item) for item in scopes}, expires.timestamp() if expires else None
        )
        return {**_wire(info), "key": secret}

    made = through(url, database, data_dir, ask, make, first=True)
    if as_json:
        print_json(made)
        return
    print_text(str(made["key"]))
    note(f"This is the only copy of the key {made['id']} ({name}: {', '.join(scopes)}). Keep it safe.")
    note("Use it as 'Authorization: Bearer KEY', or with these commands as TOOLYARD_KEY.")


@group.command("list")
def list_keys(
    *,
    url: Url = DEFAULT_URL,
    database: Database = None,
    data_dir: NamedDataDir = None,
    as_json: AsJson = False,
) -> None:
    """List keys, without their secrets."""

    async def read(store: Store) -> list[JsonObject]:
        return [_wire(info) for info in await _keys(store).list()]

    found = through(url, database, data_dir, lambda yard: yard.pages("/v1/keys", {}, 10_000), read)
    if as_json:
        print_json(found)
        return
    rows = [
        (
            item["id"],
            item.get("name"),
            texts(item.get("scopes")),
            item.get("created"),
            item.get("last_used") or "never",
            "revoked" if item.get("revoked") else "live" if item.get("live") else "expired",
        )
        for item in found
    ]
    columns = ("key", "name", "scopes", "created", "last used", "state")
    print_table(columns, rows, empty="There are no keys yet: `toolyard keys create NAME` makes one.")


@group.command("revoke")
def revoke(
    key: Annotated[str, typer.Argument(help="The key's id, as `toolyard keys list` shows it.")],
    *,
    url: Url = DEFAULT_URL,
    database: Database = None,
    data_dir: NamedDataDir = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a key: within two seconds nobody can use it."""

    async def ask(yard: Yard) -> JsonObject:
        return await yard.request("DELETE", f"/v1/keys/{segment(key)}")

    async def end(store: Store) -> JsonObject:
        return _wire(await _keys(store).revoke(key))

    answer = through(url, database, data_dir, ask, end)
    if as_json:
        print_json(answer)
    else:
        note(f"Revoked {key}.")


def through(
    url: str,
    database: str | None,
    data_dir: Path | None,
    remotely: Callable[[Yard], Awaitable[T]],
    directly: Callable[[Store], Awaitable[T]],
    *,
    first: bool = False,
) -> T:
    """A database or data folder that was named is used; else a running yard; else the data folder's database.

    `first`: make the data folder where there is none, because this may come before the first start.
    """
    if database is not None:
        _check_folder(database)
        return asyncio.run(_in_database(database, directly))
    if data_dir is not None and url == DEFAULT_URL:
        # Whichever yard answers at the usual address need not be the one of this folder.
        return _in_folder(data_dir, directly, make=first)
    try:
        answer = with_yard(url, remotely)
        if first:
            note(f"Done by the yard at {url}.")
        return answer
    except Unauthenticated as error:
        raise Unauthenticated(error.message, suggestion=_FIRST_KEY) from None
    except NoYard as nobody:
        if url != DEFAULT_URL:
            raise
        if not first and not DEFAULT_DATA_DIR.is_dir():
            raise NoYard(
                f"{nobody.message} There is no data folder {DEFAULT_DATA_DIR} here either.",
                suggestion="Start `toolyard serve`, or name the database with --database or --data-dir.",
            ) from None
        note(f"No yard runs at {url}.")
        return _in_folder(DEFAULT_DATA_DIR, directly, make=first)


def _in_folder(folder: Path, work: Callable[[Store], Awaitable[T]], *, make: bool) -> T:
    if make:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not folder.is_dir():
        raise BadInput(f"There is no data folder {folder}.", where="--data-dir", suggestion="Name the yard's own.")
    location = database_location(None, folder)
    note(f"Using the database {location}.")
    return asyncio.run(_in_database(location, work))


def _check_folder(location: str) -> None:
    if "://" not in location and not Path(location).expanduser().parent.is_dir():
        raise BadInput(f"The folder of {location} does not exist.", where="--database", suggestion="Make it first.")


async def _in_database(location: str, work: Callable[[Store], Awaitable[T]]) -> T:
    from toolyard.store.open import open_store

    store = open_store(location)
    try:
        await store.start()
        return await work(store)
    finally:
        await store.close()


def _keys(store: Store) -> Keys:
    from toolyard.identity.keys import Keys

    return Keys(store)


def _wire(info: KeyInfo) -> JsonObject:
    def time(value: float | None) -> str | None:
        return None if value is None else rfc3339(value)

    return {
        "id": info.id,
        "name": info.name,
        "scopes": sorted(info.scopes),
        "created": rfc3339(info.created),
        "expires": time(info.expires),
        "last_used": time(info.last_used),
        "revoked": time(info.revoked),
        "live": info.is_live(datetime.now(UTC).timestamp()),
    }
