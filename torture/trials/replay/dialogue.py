"""A user's dialogue with several guests: each line is a command for one of them (pure)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torture.errors import HarnessError
from torture.facts.evidence.completed import Completed

_UNKNOWN_SIGN = "\N{REPLACEMENT CHARACTER}"


class GuestFailed(HarnessError):
    """A guest gave no answer to a command. The other one may still give one."""


class Dialogue:
    """The guests, and the one that gets the next command: the first one at the beginning."""

    def __init__(self, guests: Sequence[str]) -> None:
        self._guests = tuple(guests)
        self.guest = self._guests[0]

    @property
    def prompt(self) -> str:
        """The words in front of the user's line."""
        return f"{self.guest}# "

    def command_in(self, line: str) -> str:
        """The command of a line, for `guest`; empty where the line has none.

        `GUEST:` at the beginning of the line switches to that guest, also for the lines that follow.
        """
        line = line.strip()
        for guest in self._guests:
            if line.startswith(f"{guest}:"):
                self.guest = guest
                return line.removeprefix(f"{guest}:").strip()
        return line


def talk(
    guests: Sequence[str],
    *,
    read: Callable[[str], str],
    ask: Callable[[str, str], Completed],
    say: Callable[[str], None],
) -> None:
    """Ask the guests the user's commands, and say their answers, until the user's lines end.

    `read` gets the prompt and raises `EOFError` at the end. A guest's failure is said, too.
    """
    dialogue = Dialogue(guests)
    while True:
        try:
            command = dialogue.command_in(read(dialogue.prompt))
        except EOFError:
            return
        if not command:
            continue
        try:
            said = answer_in_words(ask(dialogue.guest, command))
        except GuestFailed as failure:
            said = f"[{failure}]"
        if said:
            say(said)


def answer_in_words(completed: Completed) -> str:
    """A command's output and errors, and its exit code unless that is 0.

    The guest's signs that would steer the user's terminal are replaced.
    """
    said = [completed.stdout.rstrip("\n"), completed.stderr.rstrip("\n")]
    if completed.exit_code is None:
        said.append(f"[ended after {completed.duration_ms / 1000:.0f} s]")
    elif completed.exit_code:
        said.append(f"[exit code {completed.exit_code}]")
    return "\n".join(_plain(part) for part in said if part)


def _plain(text: str) -> str:
    return "".join(
        sign if sign.isprintable() or sign in "\n\t" else _UNKNOWN_SIGN
        for sign in text.replace("\r\n", "\n")
    )
