"""What counts as this machine, and the refusal to be open to any other."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Protocol

from toolyard.core.errors import BadInput


class Exposure(Protocol):
    """The part of the settings that says who can reach us."""

    @property
    def demo(self) -> bool: ...
    @property
    def host(self) -> str: ...


@lru_cache(maxsize=1024)
def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own, by its spelling alone: no name is resolved.

    `localhost`, 127.0.0.0/8, `::1` (with or without brackets) and their IPv4-mapped forms.
    """
    bare = host.strip("[]").partition("%")[0].rstrip(".").lower()
    if bare == "localhost" or bare.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def check_exposure(settings: Exposure) -> None:
    """Refuse to start open: demo mode asks nobody for a key, so nobody else may reach it.

    Raises:
        BadInput: demo mode on an address that other machines can reach.
    """
    if settings.demo and not is_loopback(settings.host):
        raise BadInput(
            f"Demo mode is open to everybody who can reach it, so it does not listen on {settings.host!r}.",
            where="host",
            suggestion="Use --host 127.0.0.1, or leave --demo out and log in with the link printed at first start.",
        )
