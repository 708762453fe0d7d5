"""Which addresses may be connected to. The guard's rules belong in this file; `sockets.py` asks it at both steps."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TypeAlias

from toolyard.core.errors import AddressRefused

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """What one provider may reach. Policies that compare equal may share pooled connections; others must not.

    A pool is keyed by host and port only: a connection that one policy allowed would be handed, unchecked, to a
    request under another. So there is one `Egress` per distinct policy.
    """

    refused: tuple[Network, ...] = ()
    """Networks that are not connected to, whatever name led there."""

    def check(self, host: str, address: str) -> None:
        """Called for every resolved address, and again for the very address that a socket is made for.

        Raises:
            AddressRefused: the address is in a refused network.
        """
        if not self.refused:
            return
        found = ipaddress.ip_address(address.partition("%")[0])
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        for network in self.refused:
            if found.version == network.version and found in network:
                raise AddressRefused(
                    f"{host} is at an address that is not allowed ({network}).",
                    suggestion="An operator can allow it for this provider.",
                )


OPEN = AddressPolicy()
"""Everything goes: for addresses that an operator wrote down."""
