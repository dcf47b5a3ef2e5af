"""Which hosts a server answers for, so that no page of another site can use it through a visitor's browser.

A page cannot read the answers of other sites, unless the name of its own site is made to lead to the server's address.
The header `Host` then still has that name. What a page only sends has its site in the header `Origin`.
"""

import dataclasses
import ipaddress
import re

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
    def of_server(cls, address: str, names: tuple[str, ...]) -> "Hosts | None":
        """Those of a server that listens on an address; None, if it answers for all.

        Raises:
            ValueError: a name has a scheme or port.
        """
        for name in names:
            if not name or ":" in name or _name_in(name) != name.lower():
                raise ValueError(
                    "`--allowed-host` must be a name without scheme and port, such as models.example.com. Received: "
                    f"{name[:100]!r}."
                )
        is_local = is_loopback(address)
        if not is_local and not names:
            return None
        return cls(frozenset(name.lower() for name in names), takes_addresses=not is_local)

    def refusal(self, host: str, origin: str | None) -> str | None:
        """Why a request with these headers is refused, in one sentence; None if it is answered."""
        name = _name_in(host)
        if not (self._is_known(name) or (self.takes_addresses and _is_address(name))):
            return (
                f"The host {host[:100]!r} is not served here; address the server as localhost, or start it with "
                f"--allowed-host {name[:100] or 'NAME'}."
            )
        if origin is None:
            return None
        site = _name_in(origin.partition("://")[2])
        if site == name or self._is_known(site):
            return None
        return (
            f"Pages of {origin[:100]!r} may not use this server; if they are yours, start it with "
            f"--allowed-host {site[:100] or 'NAME'}."
        )

    def _is_known(self, name: str) -> bool:
        return name in self.names or is_loopback(name)


def _name_in(host: str) -> str:
    """Name or address in a host with or without port, in small letters; "" if it is none."""
    match = _HOST.fullmatch(host.lower())
    return (match[1] or match[2]) if match else ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(name: str) -> bool:
    """Whether this name or address is that of the machine itself."""
    return name == "localhost" or (_is_address(name) and ipaddress.ip_address(name).is_loopback)
