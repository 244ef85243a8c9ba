"""Our programs as they are typed, each in a process of its own, without a second of imports for each.

An interpreter that loads pytest, SciPy and DuckDB takes that long; a fork of one that has
them starts at once. Arguments, environment, standard output and exit code are those of a program
that was started: `test_launcher.py` starts each for real and compares.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

from torture.errors import DeadlineExceeded, HarnessError
from torture.files import CHECKOUT

_LOADED = (
    "pytest", "rich.console", "torture.trials.campaign.campaign", "torture.trials.replay.replay",
    "torture.report.write", "torture.facts.stats.planning",
)  # fmt: skip
"""Modules that load slowly. None of `fixtures` or the tests: pytest rewrites these as it loads them."""
_MODULE = "-m"


class Launcher:
    """A process that starts Python programs, begun with the first of them."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def run(
        self,
        *arguments: str | Path,
        environment: Mapping[str, str] | None = None,
        deadline_s: float = 120,
    ) -> subprocess.CompletedProcess[str]:
        """The end of `python ARGUMENTS` in the checkout: a script or `-m` and a module, its arguments.

        Raises `DeadlineExceeded`, and `HarnessError` when nothing can be started.
        """
        argv = [str(argument) for argument in arguments]
        with TemporaryDirectory(prefix="launched-") as name:
            order = {
                "argv": argv,
                "environment": dict(os.environ if environment is None else environment),
                "outputs": [f"{name}/stdout", f"{name}/stderr"],
            }
            code = self._answer(order, deadline_s)
            stdout, stderr = (Path(file).read_text() for file in order["outputs"])
        return subprocess.CompletedProcess(argv, code, stdout, stderr)

    def _answer(self, order: dict[str, Any], deadline_s: float) -> int:
        process = self._process or self._begin()
        assert process.stdin is not None
        assert process.stdout is not None
        print(json.dumps(order), file=process.stdin, flush=True)
        readable, _, _ = select.select([process.stdout], [], [], deadline_s)
        answer = process.stdout.readline() if readable else ""
        if answer:
            return int(answer)
        self.close()
        if readable:
            raise HarnessError("the launcher died", hint=f"python -m {__name__}")
        raise DeadlineExceeded(f"{order['argv']} did not end within {deadline_s:g} s")

    def _begin(self) -> subprocess.Popen[str]:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return self._process

    def close(self) -> None:
        """End it, and whatever still runs of what it started."""
        process, self._process = self._process, None
        if process is None:
            return
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


LAUNCHER = Launcher()
"""That of this process; the conftest closes it."""


def run_program(
    *argv: str | Path, cwd: Path = CHECKOUT, deadline_s: float = 120, **variables: str
) -> subprocess.CompletedProcess[str]:
    """The end of a program that is started for real, with these variables beside ours."""
    return subprocess.run(
        argv,
        cwd=cwd,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=deadline_s,
        check=False,
    )


def tool(
    name: str,
    *arguments: str | Path,
    code: int = 0,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """The end of one of our tools, which has to be with this exit code and without a traceback."""
    done = LAUNCHER.run(CHECKOUT / "tools" / name, *arguments, environment=environment)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def _become(order: dict[str, Any]) -> NoReturn:
    """In the fork: run the program, and end as it ends."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, file in enumerate(order["outputs"], 1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    os.environ.clear()
    os.environ.update(order["environment"])
    code = 1
    try:
        code = _run(order["argv"])
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(argv: list[str]) -> int:
    try:
        if argv[0] == _MODULE:
            sys.argv = argv[1:]
            runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = argv
            runpy.run_path(argv[0], run_name="__main__")
    except SystemExit as exit_:
        if exit_.code is None or isinstance(exit_.code, int):
            return exit_.code or 0
        print(exit_.code, file=sys.stderr)
        return 1
    return 0


def main() -> None:
    """Called in the launcher: fork once for each order, and answer its exit code."""
    for module in _LOADED:
        importlib.import_module(module)
    gc.freeze()  # where garbage is looked for the fork's memory is copied
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(order)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers)


if __name__ == "__main__":
    main()
