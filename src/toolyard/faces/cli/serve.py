"""`toolyard serve`: a whole yard in one process."""

from __future__ import annotations

import asyncio
import signal
import socket
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolyard.core.errors import BadInput
from toolyard.faces.cli.failures import Exit
from toolyard.faces.cli.options import (
    DEFAULT_DATA_DIR,
    DEFAULT_HOST,
    DEFAULT_PORT,
    Database,
    DataDir,
    ManifestFile,
)
from toolyard.logs import log_to_stderr

if TYPE_CHECKING:
    from toolyard.app import App, Settings
    from toolyard.manifest import Manifest, ProviderConfig
    from toolyard.providers.supervisor import ProviderStatus

_FIRST_DEMO_TOOL = "petshop:listPets"


def serve(
    manifest: ManifestFile = None,
    *,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve the demo's providers too; open to this machine without a key.")
    ] = False,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = DEFAULT_HOST,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")
    ] = DEFAULT_PORT,
    database: Database = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    blobs: Annotated[
        str | None,
        typer.Option(
            envvar="TOOLYARD_BLOBS", help="A folder or a URL such as s3://bucket for large results and documents."
        ),
    ] = None,
    public_url: Annotated[
        str | None, typer.Option(envvar="TOOLYARD_PUBLIC_URL", help="How clients reach this yard, for links.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Serve MCP, the HTTP API and the console until Ctrl-C."""
    from toolyard.app import Settings
    from toolyard.manifest import Manifest, load
    from toolyard.serving import listening_socket, raise_file_limit

    log_to_stderr(verbose=verbose)
    raise_file_limit()
    declared = load(manifest) if manifest is not None else Manifest()
    with listening_socket(host, port) as bound:
        settings = Settings(
            data_dir=data_dir,
            database=database or "",
            blobs=blobs or "",
            host=host,
            port=bound.getsockname()[1],
            public_url=public_url or "",
            demo=demo,
            manifest_dir=manifest.resolve().parent if manifest is not None else None,
        )
        ended = _run(settings, declared, bound)
    raise typer.Exit(ended)


def _run(settings: Settings, manifest: Manifest, bound: socket.socket) -> Exit:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            runner.run(_serve(settings, manifest, bound))
        except asyncio.CancelledError:
            return Exit.INTERRUPTED
    return Exit.OK


class _Stopper:
    """Ctrl-C and SIGTERM: before the yard is ready they end its start, afterwards they ask it to finish.

    A second signal is the operating system's again, for those who will not wait.
    """

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._asked = asyncio.Event()
        self._is_ready = False
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.add_signal_handler(number, self._stop)

    def _stop(self) -> None:
        self._asked.set()
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)
        if not self._is_ready and self._task is not None:
            self._task.cancel()

    async def wait(self) -> None:
        self._is_ready = True
        await self._asked.wait()


async def _serve(settings: Settings, manifest: Manifest, bound: socket.socket) -> None:
    from toolyard.app import App
    from toolyard.faces import asgi
    from toolyard.serving import serving, settle_memory

    stopper = _Stopper()
    async with AsyncExitStack() as stack:
        if settings.demo:
            manifest = await _with_demo(manifest, settings.data_dir, stack)
        app = await stack.enter_async_context(App.running(settings, manifest))
        faces = asgi.build(app)
        await stack.enter_async_context(serving(faces, bound))
        stack.callback(faces.close)
        link = None if settings.demo else await app.operators.first_link(app.settings.url)
        print(welcome(app, link), flush=True)
        settle_memory()
        await stopper.wait()
        print("Stopping ...", flush=True)


async def _with_demo(manifest: Manifest, data_dir: Path, stack: AsyncExitStack) -> Manifest:
    """
    Raises:
        BadInput: the manifest uses an id of the demo's.
    """
    import msgspec

    from toolyard.demo.yard import demo_manifest, petshop_running

    demo = demo_manifest(petshop_url=await stack.enter_async_context(petshop_running()), data_dir=data_dir)
    taken = {config.id for config in manifest.all_providers} | {config.id for config in manifest.servers}
    for config in (*demo.providers, *demo.servers):
        if config.id in taken:
            raise BadInput(
                f"The manifest uses the id {config.id!r}, which is the demo's.",
                where="--demo",
                suggestion="Rename it, or leave out --demo.",
            )
    return msgspec.structs.replace(
        manifest,
        providers=(*manifest.providers, *demo.providers),
        servers=(*manifest.servers, *demo.servers),
        skills=(*manifest.skills, *demo.skills),
    )


def welcome(app: App, login_link: str | None) -> str:
    """What stands on the screen once everything answers: where it is, what it has, what to do first."""
    url = app.settings.url
    snapshot = app.catalog.snapshot
    lines = [
        f"Toolyard is ready at {url}  ({len(snapshot.entries)} tools)",
        "",
        f"  Console   {url}/",
        f"  MCP       {url}/mcp",
        f"  HTTP API  {url}/docs",
        "",
    ]
    notes = [f"  {status.id} is down: {status.last_error}" for status in app.supervisor.statuses() if _is_down(status)]
    notes += [f"  {config.id} is kept, but {config_kind(config)} is not served yet." for config in _not_served(app)]
    lines += [*notes, ""] if notes else []
    if app.settings.demo:
        lines += [
            f"First: open {url}/ in a browser, choose {_FIRST_DEMO_TOOL} and press Call.",
            f"Or in another terminal: toolyard call {_FIRST_DEMO_TOOL} --arg kind=cat",
        ]
    elif login_link is not None:
        lines += [f"First: log in with this link (it works once): {login_link}"]
    else:
        lines += ["Log in at the console, or make a key with `toolyard keys create NAME`."]
    return "\n".join([*lines, "Ctrl-C stops it."])


def _is_down(status: ProviderStatus) -> bool:
    return status.state == "down"


def _not_served(app: App) -> list[ProviderConfig]:
    return [config for config in app.manifest.all_providers if app.supervisor.provider(config.id) is None]


def config_kind(config: ProviderConfig) -> str:
    return str(config.__struct_config__.tag)
