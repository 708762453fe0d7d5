"""`import_document`: downloads, then reads in a worker process, or in a thread when the document is small."""

from __future__ import annotations

import asyncio
import re
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from toolyard.core.call import Progress, ProgressSink
from toolyard.core.errors import DocumentError, EgressError
from toolyard.core.names import check_namespace, slugify
from toolyard.egress import Egress, without_secrets
from toolyard.providers.openapi.api import ImportedApi
from toolyard.providers.openapi.frames import PREFIX, Done, Fetch, Fetched, FromWorker, Job, Progressed, Refused, frame
from toolyard.providers.openapi.importer import Imported, import_data, read_source
from toolyard.providers.openapi.loading import LARGEST_DOCUMENT, DocumentSource, too_large

SMALL_JSON = 256 * 1024
SMALL_YAML = 32 * 1024
"""Below these a thread holds the interpreter for less time than a process takes to start (decision 020)."""
DOWNLOAD_SECONDS = 60.0
IMPORT_SECONDS = 180.0
_REFERS_TO_FILES = re.compile(rb"""\$ref["']?\s*:\s*["']?[^"'#\s]""")
_TYPES = {"Accept": "application/json, application/yaml, text/yaml, */*;q=0.5"}


async def import_document(
    source: DocumentSource,
    *,
    egress: Egress,
    namespace: str | None = None,
    cluster: str | None = None,
    base_url: str | None = None,
    in_worker: bool = True,
    on_progress: ProgressSink | None = None,
) -> ImportedApi:
    """Read a document and make its operations tools.

    Args:
        namespace: the provider id; by default made from the document's title.
        cluster: by default the document's title.
        base_url: where the API is, if an operator says so; then the report does not ask for it.
        in_worker: False reads in a thread, whatever the size.

    Raises:
        DocumentError: the document cannot be had, or not be read as a whole. One bad operation is never a reason.
        BadInput: `namespace` is no legal provider id.
    """
    if namespace is not None:
        check_namespace(namespace)
    job = Job(source.location, source.given)
    if source.kind == "url":
        _tell(on_progress, 0, None, "Downloading the document")
        data, url = await _download(source.location, egress)
        job = Job(url, data)
    _tell(on_progress, 0, None, "Reading the document")
    try:
        async with asyncio.timeout(IMPORT_SECONDS):
            small = await asyncio.to_thread(_is_small, job)
            read = _in_thread if small or not in_worker else _in_process
            imported = await read(job, egress, on_progress)
    except TimeoutError as error:
        raise DocumentError(
            f"The document was not read within {IMPORT_SECONDS:g} s.", suggestion="Import a smaller part of it."
        ) from error
    if base_url:
        imported = _with_base_url(imported)
    _tell(on_progress, imported.report.imported, imported.report.imported, "Done")
    return ImportedApi(
        namespace=namespace or slugify(imported.title), cluster=cluster or imported.title, imported=imported
    )


async def _download(url: str, egress: Egress) -> tuple[bytes, str]:
    try:
        answer = await egress.request(
            "GET", url, headers=_TYPES, time_limit=DOWNLOAD_SECONDS, max_bytes=LARGEST_DOCUMENT
        )
    except EgressError as error:
        raise DocumentError(f"The document cannot be fetched. {error.message}", suggestion=error.suggestion) from error
    shown = without_secrets(url)
    if answer.truncated:
        raise too_large(shown)
    if answer.status != 200:
        raise DocumentError(
            f"{shown} answered with status {answer.status} instead of the document.",
            suggestion="Check the address, and whether it needs a login; a document can also be uploaded.",
        )
    return answer.body, answer.url


def _is_small(job: Job) -> bool:
    """Small, and alone: the files that a document refers to may be any size."""
    data = job.data
    if data is None:
        try:
            with Path(job.location).open("rb") as file:
                data = file.read(SMALL_JSON + 1)
        except OSError:
            return True  # and reading it says why
    if job.location and _REFERS_TO_FILES.search(data):
        return False
    limit = SMALL_JSON if data[:64].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" else SMALL_YAML
    return len(data) <= limit


async def _in_thread(job: Job, egress: Egress, on_progress: ProgressSink | None) -> Imported:
    loop = asyncio.get_running_loop()

    def fetch(url: str) -> bytes:
        answer = asyncio.run_coroutine_threadsafe(_fetch(url, egress), loop).result()
        if answer.error:
            raise DocumentError(answer.error)
        return answer.data

    def read() -> Imported:
        data, files = read_source(job.location, job.data, fetch)
        return import_data(data, files, document_url=job.location if job.data is not None else "")

    return await asyncio.to_thread(read)


async def _in_process(job: Job, egress: Egress, on_progress: ProgressSink | None) -> Imported:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "toolyard.providers.openapi.worker",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        return await _converse(process, job, egress, on_progress)
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        cause = (await process.stderr.read() if process.stderr else b"").decode(errors="replace").strip()
        last = cause.rpartition("\n")[2] or f"exit status {await process.wait()}"
        raise DocumentError(
            f"The import broke off: {last}.", suggestion="If the document is very large, import a smaller part of it."
        ) from error
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def _converse(
    process: asyncio.subprocess.Process, job: Job, egress: Egress, on_progress: ProgressSink | None
) -> Imported:
    reader, writer = process.stdout, process.stdin
    if reader is None or writer is None:
        raise RuntimeError("the worker was started with pipes")
    decoder: msgspec.msgpack.Decoder[FromWorker] = msgspec.msgpack.Decoder(FromWorker)
    writer.write(frame(job))
    await writer.drain()
    while True:
        length = int.from_bytes(await reader.readexactly(PREFIX), "big")
        match decoder.decode(await reader.readexactly(length)):
            case Fetch(url):
                writer.write(frame(await _fetch(url, egress)))
                await writer.drain()
            case Progressed(done, total):
                _tell(on_progress, done, total, "Reading operations")
            case Done(imported):
                return msgspec.msgpack.decode(imported, type=Imported)
            case Refused(message, suggestion):
                raise DocumentError(message, suggestion=suggestion)


async def _fetch(url: str, egress: Egress) -> Fetched:
    """One of the other files of a document; what fails costs only what refers to it."""
    try:
        data, _ = await _download(url, egress)
    except DocumentError as error:
        return Fetched(b"", error.message)
    return Fetched(data)


def _with_base_url(imported: Imported) -> Imported:
    needs = tuple(need for need in imported.report.needs if not need.startswith("a base URL"))
    return msgspec.structs.replace(imported, report=msgspec.structs.replace(imported.report, needs=needs))


def _tell(sink: ProgressSink | None, done: float, total: float | None, message: str) -> None:
    if sink is not None:
        sink(Progress(done, total, message))
