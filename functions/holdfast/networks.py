"""Networks in CIDR notation, and the addresses from which a team and its records accept requests."""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

MAX_OF_A_RECORD: Final = 50
"""The most networks of a record."""
LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
"""Hosts of this machine, for which plain HTTP is accepted."""


def check(texts: Sequence[str]) -> tuple[str, ...]:
    """Return networks unchanged; raise `ValueError` for an invalid network, and for two that overlap.

    No network is invalid too: a list without a network must never read as every address.

    >>> check(["203.0.113.0/24", "2001:db8::/32"])
    ('203.0.113.0/24', '2001:db8::/32')
    """
    if not texts:
        raise ValueError("at least one network is required; 0.0.0.0/0 contains every IPv4 address")
    seen: list[IPv4Network | IPv6Network] = []
    for text in texts:
        network = _parse(text)
        for other in seen:
            if network.version == other.version and network.overlaps(other):
                wider, narrower = sorted((other, network), key=lambda overlapping: overlapping.prefixlen)
                raise ValueError(f"the network {wider} includes the network {narrower}; remove {narrower}")
        seen.append(network)
    return tuple(texts)


def check_new(texts: Sequence[str]) -> tuple[str, ...]:
    """Return networks of a new setting or record unchanged, as `check` does; refuse IPv6 alone.

    API Gateway and S3 see only IPv4, so that networks of IPv6 alone refuse everybody. Stored lists are read
    with `check`, because they may be older than this rule.

    >>> check_new(["203.0.113.0/24", "2001:db8::/32"])
    ('203.0.113.0/24', '2001:db8::/32')
    """
    networks = check(texts)
    if all(ip_network(text).version == 6 for text in networks):
        raise ValueError(
            f"{', '.join(networks)} would refuse every caller, because requests come only from IPv4 "
            "addresses; add an IPv4 network, such as 203.0.113.0/24"
        )
    return networks


def _parse(text: str) -> IPv4Network | IPv6Network:
    try:
        # An interface, as in `fe80::%eth0`, is of no use and S3 knows none.
        network = ip_network("" if "%" in text else text, strict=False)
    except ValueError:
        raise ValueError(f"{text!r} is not a network; write a network such as 203.0.113.0/24") from None
    if (of_ipv4 := _of_ipv4(network)) is not None:
        raise ValueError(f"{text!r} is an IPv4 network in IPv6 notation; write {of_ipv4}")
    # The one way in which S3 and this module read it alike: no host bits, and no mask in another form.
    if str(network) != text:
        raise ValueError(f"{text!r} is not in the standard form of a network; write {network}")
    return network


def _of_ipv4(network: IPv4Network | IPv6Network) -> IPv4Network | None:
    """Return the network of IPv4 in a network such as `::ffff:203.0.113.0/120`, else None."""
    mapped = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    return IPv4Network((mapped, network.prefixlen - 96)) if mapped and network.prefixlen >= 96 else None


def covers(networks: Sequence[str], address: str) -> bool:
    """Return whether an address is in one of some networks; False if it is not an address.

    >>> covers(["203.0.113.0/24"], "203.0.113.5"), covers(["203.0.113.0/24"], "::ffff:203.0.113.5")
    (True, True)
    """
    try:
        source: IPv4Address | IPv6Address = ip_address(address)
    except ValueError:
        return False
    if isinstance(source, IPv6Address):
        source = source.ipv4_mapped or source
    return any(source in ip_network(network) for network in networks)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a request comes from, and whence the team accepts requests.

    Attributes:
        address: the source address, as API Gateway saw it; never from a header.
        team: the team's networks; empty for every address.
        decides_alone: whether no decision for this address is used for another. The networks of a record
            would otherwise admit other addresses for as long as API Gateway caches a decision.
    """

    address: str
    team: tuple[str, ...] = ()
    decides_alone: bool = False

    @property
    def is_of_team(self) -> bool:
        """True if the team accepts requests from the address."""
        return not self.team or covers(self.team, self.address)

    def is_of_record(self, networks: Sequence[str]) -> bool:
        """Return whether a record with these networks accepts requests from the address."""
        return not networks or (self.decides_alone and covers(networks, self.address))
