"""The way to a Dask scheduler that only its fleet reaches, and the calls on it, each with a deadline.

Dask's protocol runs the code of whoever connects (https://distributed.dask.org/en/stable/tls.html).

Dask's errors are of many kinds, with no common base. Here they become `HarnessError`, or "no answer".
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import ipaddress
import logging
import os
import queue
import secrets
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import urlsplit

from torture.errors import DeadlineExceeded, HarnessError
from torture.features.fleet.cluster import (
    AUTHORITY,
    CERTIFICATE,
    CERTIFICATES_VARIABLE,
    KEY,
    SETTINGS,
    certificates_folder,
)
from torture.features.fleet.host import HostOrders, Make, begin

_CONNECT_DEADLINE_S = 15


def checked_address(text: str) -> str:
    """A scheduler's address that is safe to use; raises `HarnessError` for any other."""
    address = text if "://" in text else f"tcp://{text}"
    parts = urlsplit(address)
    try:
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise HarnessError(f"{text} is no address: {error}", hint=_FORM) from error
    if parts.scheme not in ("tcp", "tls") or not host or port is None:
        raise HarnessError(f"{text!r} is no address of a scheduler", hint=_FORM)
    if parts.scheme == "tcp" and not _is_loopback(host):
        raise HarnessError(
            f"{text} is a plain address of another machine: a Dask scheduler there runs the code of "
            "every program that reaches it",
            hint="tools/fleet certificates DIR, then --workers dask:tls://HOST:PORT",
        )
    return address


_FORM = "--workers dask:tcp://127.0.0.1:8786, or dask:tls://HOST:8786"


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name, which may be any machine's


def connect(place: str) -> tuple[Any, Any]:
    """A client of the scheduler at an address, or of a cluster on this machine, and that cluster.

    Raises `HarnessError` when Dask is missing, the address is unsafe, or there is no answer.
    """
    try:
        dask, distributed = map(importlib.import_module, ("dask", "distributed"))
    except ImportError as error:
        raise HarnessError(
            f"--workers dask needs Dask distributed: {error}",
            hint="tools/run --setup-only --workers dask",
        ) from error
    loggers = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    for name in (*loggers, "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # the run says it in its own words
    if not place:
        with dask.config.set(SETTINGS):
            cluster = distributed.LocalCluster(
                n_workers=len(os.sched_getaffinity(0)),
                threads_per_worker=1,
                memory_limit=0,
                host="127.0.0.1",
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            )
        return distributed.Client(cluster, set_as_default=False), cluster
    address = checked_address(place)
    security = _security(distributed) if address.startswith("tls:") else None
    try:
        client = distributed.Client(
            address, security=security, set_as_default=False, timeout=_CONNECT_DEADLINE_S
        )
    except (OSError, TimeoutError) as error:
        raise HarnessError(
            f"no Dask scheduler answers at {address}: {error}", hint="tools/fleet commands"
        ) from error
    return client, None


def _security(distributed: Any) -> Any:
    folder = certificates_folder()
    authority, certificate, key = (folder / name for name in (AUTHORITY, CERTIFICATE, KEY))
    for file in (authority, certificate, key):
        if not file.is_file():
            raise HarnessError(
                f"there is no certificate {file}",
                hint=f"tools/fleet certificates {folder}, or set {CERTIFICATES_VARIABLE}",
            )
    return distributed.Security(
        require_encryption=True,
        tls_ca_file=str(authority),
        tls_client_cert=str(certificate),
        tls_client_key=str(key),
    )


ANSWER_DEADLINE_S = 10.0
GRACE_S = 600.0
"""For the evidence to come over the network, beside the work of a call."""
_DONE = "is done"


@dataclass(kw_only=True, eq=False)
class Slot:
    """A worker that has shown that it works; `is_gone` once it is no slot any more."""

    address: str
    name: str
    """The host's, for people."""
    token: str
    """It tells this process from a later one at the same address."""
    is_gone: bool = False
    events: queue.Queue[str] = field(default_factory=queue.Queue)
    """Wakes the call that waits for the worker."""


class DaskCalls:
    """A client of Dask, for one campaign."""

    def __init__(self, client: Any, orders: HostOrders) -> None:
        self._client = client
        self._orders = orders

    @property
    def is_connected(self) -> bool:
        """Whether the scheduler is there, as far as the client knows."""
        return bool(self._client.status == "running")

    def welcome(self, address: str, make: Make) -> Any:
        """The future of a worker's slot: it first shows that it works."""
        return self._submit(address, begin, asdict(self._orders), make)

    def ask(self, slot: Slot, function: Callable[..., Any], *arguments: Any, by_s: float) -> Any:
        """The result of a task on a slot's worker, and on no other.

        Raises `DeadlineExceeded` after `by_s`, and `HarnessError` when the worker fails, is killed or
        is gone.
        """
        events = slot.events = queue.Queue[str]()
        site = self._orders.site
        future = self._submit(slot.address, function, site, slot.token, *arguments)
        # not `Future.result`: it would wait for a result that went with its worker
        gathered = asyncio.run_coroutine_threadsafe(
            self._client.gather(future, asynchronous=True), self._client.loop.asyncio_loop
        )
        gathered.add_done_callback(lambda _done: events.put(_DONE))
        try:
            if slot.is_gone:
                events.put("is gone")
            if (event := events.get(timeout=by_s)) != _DONE:
                raise HarnessError(f"the worker on {slot.name} {event}")
            return gathered.result(timeout=0)
        except queue.Empty:
            raise DeadlineExceeded(f"the worker on {slot.name} took too long") from None
        except HarnessError:
            raise
        except (Exception, CancelledError) as error:
            # a worker or a scheduler that is lost
            raise HarnessError(f"the worker on {slot.name} died: {in_words(error)}") from error
        finally:
            gathered.cancel()
            future.release()

    def tell(self, function: Callable[[str], None], addresses: list[str] | None) -> None:
        """Run a function beside the tasks of these workers, or of all; one that is gone needs none."""
        with contextlib.suppress(Exception):
            self._client.run(
                function,
                self._orders.site,
                workers=addresses,
                on_error="ignore",
                callback_timeout=ANSWER_DEADLINE_S,
            )

    def show_life(self, beats: int) -> None:
        """Renew the leases of all hosts; raises what Dask raises."""
        self._call_scheduler("set_metadata", keys=[self._orders.site], value=beats)

    def workers(self) -> dict[str, Any]:
        """The scheduler's workers by address; raises what Dask raises."""
        found: dict[str, Any] = self._call_scheduler("identity", n_workers=-1)["workers"]
        return found

    def _call_scheduler(self, name: str, **arguments: Any) -> Any:
        if not self.is_connected:
            raise ConnectionError("the scheduler is gone")
        return self._client.sync(
            getattr(self._client.scheduler, name), **arguments, callback_timeout=ANSWER_DEADLINE_S
        )

    def _submit(self, address: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """A task that no other worker may run, and that Dask never repeats."""
        return self._client.submit(
            function,
            *arguments,
            key=f"{function.__name__}-{secrets.token_hex(8)}",
            workers=[address],
            allow_other_workers=False,
            retries=0,
            pure=False,
        )


def in_words(error: BaseException) -> str:
    """An error of Dask's, many of which have no message."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
