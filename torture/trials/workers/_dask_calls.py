"""Calls of a campaign to its Dask workers and scheduler: each has a deadline, and ends with one error.

Dask's errors are of many kinds, with no common base. Here they become `HarnessError`, or "no answer".
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import secrets
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import asdict, dataclass, field
from typing import Any

from torture.errors import DeadlineExceeded, HarnessError
from torture.trials.workers._dask_host import HostOrders, Make, begin

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
