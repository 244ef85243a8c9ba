"""A bridge and a tap: the NAS has an address of its own, with all its ports."""

from __future__ import annotations

from torture.host.commands import run_host
from torture.host.network_kind import NetworkKind
from torture.lab.domains import TapInterface
from torture.lab.network import HOST_MAC, NAS_ADDRESS, NAS_MAC, NAS_PREFIX_BITS

_BRIDGE = "br0"
_NAS_TAP = "nas0"
_HOST_ADDRESS = "10.77.0.1"


class BridgeNetwork:
    """Needs `/dev/net/tun`; the tap stays while the NAS behind it comes and goes."""

    kind = NetworkKind.BRIDGE
    nas_host = NAS_ADDRESS

    def set_up(self) -> None:
        """Make bridge and tap, without delays before they forward."""
        for line in (
            "link set lo up",
            f"link add {_BRIDGE} address {HOST_MAC} type bridge forward_delay 0 stp_state 0",
            f"addr add {_HOST_ADDRESS}/{NAS_PREFIX_BITS} dev {_BRIDGE}",
            f"tuntap add dev {_NAS_TAP} mode tap",
            f"link set {_NAS_TAP} master {_BRIDGE}",
            f"link set {_NAS_TAP} up",
            f"link set {_BRIDGE} up",
        ):
            run_host("ip", *line.split(), hint="tools/doctor; or try --network usermode")

    def nas_interface(self) -> TapInterface:
        """The card on the tap."""
        return TapInterface(tap=_NAS_TAP, mac=NAS_MAC)
