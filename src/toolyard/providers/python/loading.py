"""Imports a module named in a manifest, and finds what is decorated in it."""

from __future__ import annotations

import importlib
import inspect
import sys
import traceback
from pathlib import Path

from toolyard.core.errors import ProviderError
from toolyard.providers.python.decorator import PythonTool
from toolyard.providers.python.offers import PythonOffer, offer_of


def load(module: str, path: Path | None) -> list[PythonTool | PythonOffer]:
    """The decorated functions that the module defines or imports, in the order of its names' appearance.

    Raises:
        ProviderError: it cannot be imported (module, file, line), or holds nothing that is decorated.
    """
    if path is not None and str(path) not in sys.path:
        sys.path.insert(0, str(path))
    try:
        loaded = importlib.import_module(module)
    except Exception as error:
        raise _import_failed(module, path, error) from error
    found: dict[tuple[type, int], PythonTool | PythonOffer] = {}
    for _, value in inspect.getmembers_static(loaded):
        for marked in (PythonTool.of(value), offer_of(value)):
            if marked is not None:
                found[type(marked), id(marked.function)] = marked
    if not found:
        raise ProviderError(
            f"The module {module!r} ({getattr(loaded, '__file__', 'built in')}) holds no tools.",
            suggestion="Decorate its functions with @toolyard.tool.",
        )
    return sorted(found.values(), key=lambda one: (one.function.__module__, one.function.__code__.co_firstlineno))


def _import_failed(module: str, path: Path | None, error: Exception) -> ProviderError:
    if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
        where = f" in {path} or" if path else ""
        return ProviderError(
            f"The module {module!r} was not found{where} on Python's path.",
            suggestion="Name it as `import` would, and keep it beside the manifest or install it.",
        )
    if isinstance(error, SyntaxError):
        place = f"{error.filename}:{error.lineno}"
    else:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
        last = frames[-1] if frames else None
        place = f"{last.filename}:{last.lineno}" if last else "unknown place"
    text = " ".join(str(error).split())[:300]
    return ProviderError(f"The module {module!r} cannot be imported: {place}: {type(error).__name__}: {text}")
