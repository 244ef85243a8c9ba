"""The networks of a worker: a bridge, or QEMU's user-mode stack."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from torture.choices.transports import FORWARDED_PORTS
from torture.errors import HarnessError
from torture.machines.host.abilities import NetworkKind, run_host
from torture.machines.lab.domains import TapInterface, UserModeInterface
from torture.machines.lab.network import (
    CHECKER_MAC,
    CLIENT_MAC,
    HOST_MAC,
    NAS_ADDRESS,
    NAS_MAC,
    NAS_PREFIX_BITS,
)
from torture.machines.lab.network.wire import QUEUE_FRAMES, Pace, Wire, wait_for_link

# A bridge and taps: the NAS has an address of its own, with all its ports, and so may clients.
_BRIDGE = "br0"
_NAS_TAP, _CLIENT_TAP, _CHECKER_TAP = "nas0", "client0", "checker0"
# A modelled link has the NAS alone on a bridge of its own, and the wire between both bridges.
_NAS_BRIDGE = "br1"
_WIRE_TO_NAS, _WIRE_TO_OTHERS = "wirenas0", "wireall0"
_BRIDGE_HINT = "tools/doctor; or try --network usermode"
_HOST_ADDRESS = "10.77.0.1"


class BridgeNetwork:
    """Needs `/dev/net/tun`; a tap stays while the machine behind it comes and goes."""

    kind = NetworkKind.BRIDGE
    nas_host = NAS_ADDRESS

    def __init__(self) -> None:
        self._bridge_of_nas = _BRIDGE
        self._is_nas_in = True

    def set_up(self) -> None:
        """Make bridge and taps, without delays before they forward."""
        taps = [
            line
            for tap in (_NAS_TAP, _CLIENT_TAP, _CHECKER_TAP)
            for line in (
                f"tuntap add dev {tap} mode tap",
                f"link set {tap} master {_BRIDGE}",
                f"link set {tap} up",
            )
        ]
        for line in (
            "link set lo up",
            f"link add {_BRIDGE} address {HOST_MAC} type bridge forward_delay 0 stp_state 0",
            f"addr add {_HOST_ADDRESS}/{NAS_PREFIX_BITS} dev {_BRIDGE}",
            *taps,
            f"link set {_BRIDGE} up",
        ):
            _ip(line)

    def nas_interface(self) -> TapInterface:
        """The card on the tap."""
        return TapInterface(tap=_NAS_TAP, mac=NAS_MAC)

    def client_interface(self, *, is_checker: bool) -> TapInterface:
        """The card on a tap of its own."""
        if is_checker:
            return TapInterface(tap=_CHECKER_TAP, mac=CHECKER_MAC)
        return TapInterface(tap=_CLIENT_TAP, mac=CLIENT_MAC)

    def plug_nas(self, *, is_in: bool) -> None:
        """Take the NAS's tap out of the bridge, or into it. Outside, no host answers, nor refuses."""
        self._is_nas_in = is_in
        _ip(f"link set {_NAS_TAP} " + (f"master {self._bridge_of_nas}" if is_in else "nomaster"))

    @contextmanager
    def slowed_link(self, pace: Pace) -> Iterator[Wire]:
        """Put a bridge for the NAS alone, and the wire, between it and all others.

        A connection survives the beginning and the end, except for the frames on their way. The wire
        ends with the thread that began it.
        """
        if self._bridge_of_nas != _BRIDGE:
            raise HarnessError("the link of the NAS is slowed already")
        with ExitStack() as restored:
            restored.callback(self._lead_nas_to, _BRIDGE)
            _ip(f"link add {_NAS_BRIDGE} type bridge forward_delay 0 stp_state 0")
            restored.callback(_ip, f"link del {_NAS_BRIDGE}")
            for tap, bridge in ((_WIRE_TO_NAS, _NAS_BRIDGE), (_WIRE_TO_OTHERS, _BRIDGE)):
                _ip(f"tuntap add dev {tap} mode tap")
                restored.callback(_ip, f"link del {tap}")
                _ip(f"link set {tap} txqueuelen {QUEUE_FRAMES} master {bridge}")
            wire = restored.enter_context(
                Wire(pace, to_nas=_WIRE_TO_NAS, to_others=_WIRE_TO_OTHERS)
            )
            for device in (_NAS_BRIDGE, _WIRE_TO_NAS, _WIRE_TO_OTHERS):
                _ip(f"link set {device} up")
            wait_for_link(_WIRE_TO_NAS, _WIRE_TO_OTHERS)
            self._lead_nas_to(_NAS_BRIDGE)
            yield wire
            wire.check()

    def _lead_nas_to(self, bridge: str) -> None:
        """A NAS whose cable is pulled stays outside until its cable is put in."""
        self._bridge_of_nas = bridge
        if self._is_nas_in:
            _ip(f"link set {_NAS_TAP} master {bridge}")


def _ip(line: str) -> None:
    run_host("ip", *line.split(), hint=_BRIDGE_HINT)


# QEMU's user-mode stack: needs no tap, so it works where `/dev/net/tun` is closed to the user.
#
# The namespace's loopback is the worker's alone, so the NAS's ports keep their numbers. When the
# NAS's QEMU is killed, its connections are reset at once rather than falling silent. The content
# of the disks is the same.

_BRIDGE_NEEDED = "--network bridge; tools/doctor says what it needs"


class UserModeNetwork:
    """Ports of the namespace's loopback, forwarded into the NAS."""

    kind = NetworkKind.USER_MODE
    nas_host = "127.0.0.1"

    def set_up(self) -> None:
        """Bring the namespace's loopback up."""
        run_host("ip", "link", "set", "lo", "up", hint="tools/doctor")

    def nas_interface(self) -> UserModeInterface:
        """The card behind the user-mode stack."""
        return UserModeInterface(
            mac=NAS_MAC, guest_address=NAS_ADDRESS, forwarded_ports=FORWARDED_PORTS
        )

    def client_interface(self, *, is_checker: bool) -> TapInterface:
        """Refuse: there is no wire between two machines."""
        raise HarnessError(
            "a client has no way to the NAS in the user-mode network", hint=_BRIDGE_NEEDED
        )

    def plug_nas(self, *, is_in: bool) -> None:
        """Refuse: the user-mode stack refuses connections whatever the NAS does."""
        raise HarnessError("the user-mode network has no cable to pull", hint=_BRIDGE_NEEDED)

    def slowed_link(self, pace: Pace) -> AbstractContextManager[Wire]:
        """Refuse: the user-mode stack takes frames at its own speed."""
        raise HarnessError(
            f"the user-mode network has no wire to slow to {pace.rate_bits_per_s} bit/s",
            hint=_BRIDGE_NEEDED,
        )
