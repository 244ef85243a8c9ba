"""Scenes with a modelled link, each in a sandbox of its own: they measure, and the tests judge."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from statistics import median
from typing import Any

from suites.selftest.programs.launcher import run_program
from suites.selftest.shelf.wire_ends import A, B, Card, links, make_taps, wired
from torture.deadlines import wait_until_true
from torture.errors import HarnessError
from torture.machines.host.native import native_program
from torture.machines.host.scratch import sandboxed
from torture.machines.lab.network.networks import BridgeNetwork
from torture.machines.lab.network.wire import WIRE_SOURCE, Pace, Wire, wait_for_link

_DEADLINE_S = 30
_QUIET_S = 0.15
"""Longer than any gap between two frames of a scene."""
_GAP_S = 0.003
_SILENCE_S = 0.1
"""Of a cable that is pulled."""
_OWNER = """
import subprocess, sys, time
print(subprocess.Popen(sys.argv[1:], stdin=0, stdout=subprocess.DEVNULL).pid, flush=True)
time.sleep(60)
"""


def play(scene: str, **arguments: int) -> Any:
    """The result of a scene; raises `AssertionError` when it fails."""
    argv = (sys.executable, "-m", __name__, scene, json.dumps(arguments))
    ended = run_program(*sandboxed(argv), deadline_s=_DEADLINE_S)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def burst(*, rate_bits_per_s: int, one_way_us: int, frames: int, size: int) -> Any:
    """Frames as fast as they can be sent, and one more when all have come."""
    with wired(rate_bits_per_s=rate_bits_per_s, one_way_us=one_way_us) as (wire, a, b):
        begin = time.monotonic()
        for number in range(frames):
            a.send(number, size)
        sending_s = time.monotonic() - begin
        came = b.arrivals(_QUIET_S + one_way_us / 1e6)
        a.send(frames, size)
        last = b.arrivals(_QUIET_S + one_way_us / 1e6)
        return {
            "numbers": [arrival.number for arrival in came],
            "sending_s": sending_s,
            "took_s": (came[-1].time_ns - came[0].time_ns) / 1e9,
            "last": [arrival.number for arrival in last],
            "counts": wire.counts().as_json(),
        }


def spaced(*, rate_bits_per_s: int, one_way_us: int, frames: int, size: int) -> list[float]:
    """The delay of each of some frames with gaps between them, in us, of one direction each."""
    with wired(rate_bits_per_s=rate_bits_per_s, one_way_us=one_way_us) as (_, a, b):
        delays = []
        for source, target in ((a, b), (b, a)):
            sent = []
            for number in range(frames):
                sent.append(source.send(number, size))
                time.sleep(_GAP_S)
            came = target.arrivals(_QUIET_S)
            assert [arrival.number for arrival in came] == list(range(frames))
            late = [arrival.time_ns - sent[arrival.number] for arrival in came]
            delays.append(median(late) / 1000)
        return delays


def independent(*, rate_bits_per_s: int, one_way_us: int, frames: int) -> Any:
    """The delay in us of small frames one way, while large ones wait for the wire of the other."""
    with wired(rate_bits_per_s=rate_bits_per_s, one_way_us=one_way_us) as (wire, a, b):
        for number in range(frames):
            a.send(number, 1514)
        sent = {}
        for number in range(20):
            sent[number] = b.send(number, 60)
            time.sleep(_GAP_S)
        is_busy = wire.counts().from_nas.frames < frames
        back = a.arrivals(_QUIET_S)
        there = b.arrivals(_QUIET_S)
        return {
            "is_busy": is_busy,
            "delay_us": median(one.time_ns - sent[one.number] for one in back) / 1000,
            "there": [arrival.number for arrival in there],
            "back": [arrival.number for arrival in back],
            "counts": wire.counts().as_json(),
        }


def owner_dies() -> bool:
    """Whether the wire ends with its owner, although another process keeps its input open."""
    make_taps()
    reading, _kept = os.pipe()
    argv = (str(native_program(WIRE_SOURCE)), A, B, "1000000", "0")
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER, *argv], stdin=reading, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    wire = int(owner.stdout.readline())
    assert not wait_until_true(lambda: not _runs(wire), deadline_s=0.3, poll_s=0.02), (
        "it runs alone"
    )
    owner.kill()
    owner.wait(_DEADLINE_S)
    return wait_until_true(lambda: not _runs(wire), deadline_s=2, poll_s=0.01)


def input_ends() -> int:
    """The exit code of a wire whose input is closed."""
    make_taps()
    argv = [str(native_program(WIRE_SOURCE)), A, B, "1000000", "0"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as wire:
        assert wire.stdout is not None
        wire.stdout.readline()
        assert wire.stdin is not None
        wire.stdin.close()
        return wire.wait(2)


def refusals() -> dict[str, str]:
    """The messages about a missing tap, a wire that was killed, and a tap that went."""
    pace = Pace(rate_bits_per_s=0, one_way_us=0)
    make_taps()
    said = {"missing": _message(lambda: Wire(pace, to_nas=A, to_others="c0"))}
    with Wire(pace, to_nas=A, to_others=B) as wire:
        os.kill(wire.pid, signal.SIGKILL)
        ended = wait_until_true(lambda: bool(_message(wire.check)), deadline_s=2, poll_s=0.01)
        said |= {"killed": _message(wire.counts) if ended else ""}
    return said


def bridged(*, one_way_us: int) -> Any:
    """A slowed link between the NAS's card and a client's: before, meanwhile and afterwards."""
    network, nas, client = _network()
    before = links()
    pace = Pace(rate_bits_per_s=50_000_000, one_way_us=one_way_us)
    said: dict[str, Any] = {"fast": _delays(nas, client)}
    with network.slowed_link(pace) as wire:
        said["slow"] = _delays(nas, client)
        said["counts"] = wire.counts().as_json()
        said["twice"] = _message(lambda: network.slowed_link(pace).__enter__())
        network.plug_nas(is_in=False)
        said["unplugged"] = _passes(nas, client, within_s=_SILENCE_S)
        network.plug_nas(is_in=True)
        said["plugged"] = _delays(nas, client)
    said["fast again"] = _delays(nas, client)
    said["restored"] = links() == before
    network.plug_nas(is_in=False)
    with network.slowed_link(pace):
        said["still unplugged"] = _passes(nas, client, within_s=_SILENCE_S)
    said["unplugged after all"] = _passes(nas, client, within_s=_SILENCE_S)
    network.plug_nas(is_in=True)
    said["plugged after all"] = _passes(nas, client)
    return said


def bridged_failures() -> Any:
    """The network after a body that raised, and after a wire that was killed."""
    network, nas, client = _network()
    before = links()
    pace = Pace(rate_bits_per_s=50_000_000, one_way_us=2000)
    said: dict[str, Any] = {}

    def fail() -> None:
        with network.slowed_link(pace):
            raise HarnessError("the body failed")

    def kill() -> None:
        with network.slowed_link(pace) as wire:
            os.kill(wire.pid, signal.SIGKILL)
            time.sleep(0.05)

    for name, body in (("raised", fail), ("killed", kill)):
        said[name] = _message(body)
        said[f"{name}: restored"] = links() == before and _passes(nas, client)
    return said


def _network() -> tuple[BridgeNetwork, Card, Card]:
    """A bridge with the cards of a NAS and a client."""
    network = BridgeNetwork()
    network.set_up()
    nas, client = Card("nas0"), Card("client0")
    wait_for_link("nas0", "client0")
    return network, nas, client


def _delays(nas: Card, client: Card) -> list[float]:
    """The median delay in us of a frame from the NAS and of one to it."""
    found = []
    for source, target in ((nas, client), (client, nas)):
        late = []
        for number in range(9):
            sent = source.send(number)
            arrival = target.next_arrival(2)
            assert arrival is not None
            assert arrival.number == number
            late.append((arrival.time_ns - sent) / 1000)
        found.append(median(late))
    return found


def _passes(nas: Card, client: Card, *, within_s: float = 2) -> bool:
    nas.send(99)
    return client.next_arrival(within_s) is not None


def _message(act: Any) -> str:
    try:
        act()
    except HarnessError as error:
        return str(error)
    return ""


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](**json.loads(sys.argv[2]))))
