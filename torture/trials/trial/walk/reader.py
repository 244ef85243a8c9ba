"""The client's program that reads back one content after the other.

It stays up: under emulation, the start of Python takes longer than most read-backs.
"""

from __future__ import annotations

from torture.choices.workloads._guest_load import READ_BACK_SERVER, job_read_back_by
from torture.errors import HarnessError
from torture.facts.evidence.completed import Completed
from torture.machines.lab.machine import Machine
from torture.trials.trial.shared.resident import ResidentProgram

_START_DEADLINE_S = 60


class ResidentReader:
    """Reads back in a client until it is closed; the client is as good as new then."""

    def __init__(self, client: Machine) -> None:
        """Start the program; raises `HarnessError` when it does not come up."""
        self._client = client
        self._program = ResidentProgram(client, READ_BACK_SERVER)
        self._program.answer("start", deadline_s=_START_DEADLINE_S)

    def run(self, *argv: str, deadline_s: float) -> Completed:
        """Run a read-back; a command of another program runs as ever.

        Raises `StorageFailed` when it hangs, and `HarnessError` when the program ended.
        """
        job = job_read_back_by(argv)
        if job is None:
            return self._client.run(*argv, deadline_s=deadline_s)
        answer = self._program.ask(job, deadline_s=deadline_s)
        try:
            return Completed(
                vm=self._client.name,
                argv=argv,
                exit_code=int(answer["exit_code"]),
                stdout=str(answer["stdout"]),
                stderr=str(answer["stderr"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise HarnessError(
                f"in {self._client.name} the read-back's answer is unreadable: {answer!r:.300}",
                hint=f"read {self._client.spec.console_log}",
            ) from error

    def close(self) -> None:
        """End the program: it ends when its port closes."""
        self._program.close()
