"""Which hosts a server answers for, so that no page of another site can use it through a visitor's browser.

A page cannot read the answers of other sites, unless the name of its own site is made to lead to the server's address.
The header `Host` then still has that name. What a page only sends has its site in the header `Origin`.
"""

import contextlib
import dataclasses
import ipaddress
import re
from collections.abc import Sequence

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:/?#@\[\]]+))(?::\d*)?")


@dataclasses.dataclass(frozen=True)
class Hosts:
    """The hosts of requests that are answered: this machine, and those named.

    Attributes:
        names: further names, without port.
        takes_addresses: whether any IP address is a host too, as for probes of a server that other machines reach.
    """

    names: frozenset[str] = frozenset()
    takes_addresses: bool = False

    @classmethod
    def of_server(cls, address: str, names: Sequence[str]) -> "Hosts | None":
        """Those of a server at an address; None if it answers for all; raises ValueError for names with more."""
        if wrong := [name for name in names if ":" in name or _name_in(name) != name.lower() or not name]:
            raise ValueError(
                "`--allowed-host` must be a name without scheme and port, such as models.example.com. Received: "
                f"{wrong[0][:100]!r}."
            )
        is_local = is_loopback(address)
        return cls(frozenset(map(str.lower, names)), not is_local) if is_local or names else None

    def refusal(self, host: str, origins: Sequence[str]) -> str | None:
        """Why a request with these headers is refused, in one sentence; None if it is answered."""
        called = _name_in(host)
        known = self.names | ({called} if self.takes_addresses and _address(called) else set())
        names = [(host, called), *((origin, _name_in(origin.partition("://")[2])) for origin in origins)]
        for header, name in names:
            if name not in known and not is_loopback(name):
                return (
                    f"{header[:100]!r} is not this server; if the name is yours, start it with --allowed-host "
                    f"{name[:100] or 'NAME'}."
                )
        return None


def _name_in(host: str) -> str:
    """Name or address in a host with or without port, in small letters; "" if it is none."""
    match = _HOST.fullmatch(host.lower())
    return (match[1] or match[2]) if match else ""


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(name)
    return None


def is_loopback(name: str) -> bool:
    """Whether this name or address is that of the machine itself."""
    address = _address(name)
    return name == "localhost" or (address is not None and address.is_loopback)
