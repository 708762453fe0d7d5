"""Scenarios that are known to fail, by run, and why. One that passes by now is a failure too: take it out."""

from __future__ import annotations

from collections.abc import Mapping

KNOWN: Mapping[str, Mapping[str, str]] = {}
