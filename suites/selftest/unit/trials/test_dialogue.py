"""A user's dialogue with the guests of a replayed trial, over guests that are functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from torture.facts.evidence.completed import Completed
from torture.trials.replay.dialogue import Dialogue, GuestFailed, answer_in_words, talk

GUESTS = ("nas", "client")


def done(stdout: str = "", *, stderr: str = "", code: int | None = 0) -> Completed:
    return Completed(
        vm="nas", argv=("sh",), exit_code=code, stdout=stdout, stderr=stderr, duration_ms=300_400
    )


def talked(
    lines: Iterable[str], ask: Callable[[str, str], Completed] = lambda *_: done()
) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """The commands with their guests, the prompts, and the answers."""
    left, asked, prompts, said = iter(lines), list[tuple[str, str]](), list[str](), list[str]()

    def read(prompt: str) -> str:
        prompts.append(prompt)
        try:
            return next(left)
        except StopIteration:
            raise EOFError from None

    def answer(guest: str, command: str) -> Completed:
        asked.append((guest, command))
        return ask(guest, command)

    talk(GUESTS, read=read, ask=answer, say=said.append)
    return asked, prompts, said


def test_the_first_guest_gets_the_commands_until_the_user_switches() -> None:
    asked, prompts, _ = talked(["zpool status", "client:", "mount", " nas: zdb -l x ", "dmesg"])
    assert asked == [
        ("nas", "zpool status"),
        ("client", "mount"),
        ("nas", "zdb -l x"),
        ("nas", "dmesg"),
    ]
    assert prompts == ["nas# ", "nas# ", "client# ", "client# ", "nas# ", "nas# "]


def test_an_empty_line_asks_nothing() -> None:
    assert talked(["", "  ", "nas:"])[0] == []


@pytest.mark.parametrize("line", ["nasty: x", "echo nas: x", "NAS: x", "other: x"])
def test_only_a_guests_own_name_switches(line: str) -> None:
    dialogue = Dialogue(GUESTS)
    assert dialogue.command_in(line) == line
    assert dialogue.guest == "nas"


def test_a_guest_that_is_not_there_is_no_switch() -> None:
    dialogue = Dialogue(["nas"])
    assert dialogue.command_in("client: mount") == "client: mount"


def test_a_guest_that_fails_does_not_end_the_dialogue() -> None:
    def ask(guest: str, _command: str) -> Completed:
        if guest == "nas":
            raise GuestFailed("the kernel of nas crashed")
        return done("sound\n")

    _, _, said = talked(["zpool scrub tank", "client: true"], ask)
    assert said == ["[the kernel of nas crashed]", "sound"]


@pytest.mark.parametrize(
    ("completed", "words"),
    [
        (done("a\nb\n"), "a\nb"),
        (done(), ""),
        (done("a\n", stderr="b\n", code=3), "a\nb\n[exit code 3]"),
        (done(code=None), "[ended after 300 s]"),
        (done("\x1b[2Jtext\ttab\r\nend"), "\N{REPLACEMENT CHARACTER}[2Jtext\ttab\nend"),
    ],
)
def test_an_answer_has_all_that_the_user_needs(completed: Completed, words: str) -> None:
    assert answer_in_words(completed) == words
