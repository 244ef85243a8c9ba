"""The private network of one trial worker, which lives in a network namespace of its own."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from torture.machines.host.abilities import NetworkKind
from torture.machines.lab.domains import TapInterface, UserModeInterface
from torture.machines.lab.network.wire import Pace, Wire

NAS_ADDRESS = "10.77.0.2"
NAS_PREFIX_BITS = 24
NAS_MAC = "52:54:00:77:00:02"
CLIENT_ADDRESS = "10.77.0.3"
CLIENT_MAC = "52:54:00:77:00:03"
CHECKER_ADDRESS = "10.77.0.4"
CHECKER_MAC = "52:54:00:77:00:04"
"""Another address for the checking client: a client that survived the cut may still run beside it."""
HOST_MAC = "52:54:00:77:00:01"
"""The same in every sandbox: a saved NAS remembers it, and answers to it when it is resumed."""


class Network(Protocol):
    """The interface of a worker's network."""

    @property
    def kind(self) -> NetworkKind:
        """The kind of network; saved states of one kind are useless for the other."""

    @property
    def nas_host(self) -> str:
        """The address at which processes in the worker's namespace reach the NAS."""

    def set_up(self) -> None:
        """Make it, in the calling process's namespace; raises `HarnessError`."""

    def nas_interface(self) -> TapInterface | UserModeInterface:
        """The NAS's network card."""

    def client_interface(self, *, is_checker: bool) -> TapInterface:
        """The card of a client that speaks to the NAS itself; raises `HarnessError` without a wire."""

    def plug_nas(self, *, is_in: bool) -> None:
        """Pull the NAS's cable, or put it in; raises `HarnessError` where there is none."""

    def slowed_link(self, pace: Pace) -> AbstractContextManager[Wire]:
        """Lead all between the NAS and others through a wire of this pace, until the context ends.

        Raises `HarnessError` where there is no wire, and at the end when the wire ended before.
        """
