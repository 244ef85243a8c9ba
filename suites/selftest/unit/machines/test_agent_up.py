"""The wait for a guest agent: it asks again at once, and finds the reason of a death."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import libvirt
import libvirt_qemu
import pytest

from torture.errors import DeadlineExceeded, HarnessError
from torture.machines.lab.agent import Agent

_NOT_CONNECTED = "Guest agent is not responding: QEMU guest agent is not connected"
_GONE = "Requested operation is not valid: domain is not running"
_GRACE_S = 1.0

Answers = Callable[..., None]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Let libvirt refuse with these words, one after the other, and then answer."""

    def use(*refusals: str) -> None:
        left: Iterator[str] = iter(refusals)

        def command(*_: object) -> str:
            for refusal in left:
                raise libvirt.libvirtError(refusal)
            return json.dumps({"return": {}})

        monkeypatch.setattr(libvirt_qemu, "qemuAgentCommand", command)

    return use


def agent(raise_if_dead: Callable[[], None] = lambda: None) -> Agent:
    """The agent of a guest that is dead if the function says so."""
    return Agent(domain=None, vm="nas", raise_if_dead=raise_if_dead)


def test_a_resumed_guest_is_asked_again_at_once(answers: Answers) -> None:
    answers(_NOT_CONNECTED, _NOT_CONNECTED)
    begun_s = time.monotonic()
    agent().wait_until_up(deadline_s=30)
    assert time.monotonic() - begun_s < _GRACE_S / 2


def test_a_guest_that_never_answers_is_late(answers: Answers) -> None:
    answers(*[_NOT_CONNECTED] * 1000)
    with pytest.raises(DeadlineExceeded, match=r"agent of nas did not answer within 0\.2 s"):
        agent().wait_until_up(deadline_s=0.2)


def shown_late() -> Callable[[], None]:
    """A look for a death that finds it only after some looks: the socket closes before QEMU ends."""
    looks = iter(range(1000))

    def raise_if_dead() -> None:
        if next(looks) > 3:
            raise HarnessError("its kernel crashed")

    return raise_if_dead


@pytest.mark.parametrize("refusal", [_NOT_CONNECTED, _GONE])
def test_a_death_is_the_reason_although_it_shows_late(answers: Answers, refusal: str) -> None:
    answers(*[refusal] * 1000)
    with pytest.raises(HarnessError, match="its kernel crashed"):
        agent(shown_late()).wait_until_up(deadline_s=30)
    with pytest.raises(HarnessError, match="its kernel crashed"):
        agent(shown_late()).call("guest-ping")
