"""A function that can be run with JSON: what was read from it once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolyard.providers.python.docstring import parse
from toolyard.providers.python.signature import Signature, read_signature


@dataclass(frozen=True, slots=True)
class Runnable:
    function: Callable[..., Any]
    signature: Signature
    is_async: bool

    @staticmethod
    def of(function: Callable[..., Any], name: str) -> Runnable:
        """
        Raises:
            ProviderError: its parameters cannot be given by name, or a hint is not understood.
        """
        signature = read_signature(function, parse(function.__doc__), name)
        return Runnable(function, signature, inspect.iscoroutinefunction(function))
