"""Playing scenes with real machines in a sandbox of their own, from a test outside of it."""

from __future__ import annotations

import importlib
import json
import os
import select
import shutil
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any, Self

from torture.errors import DeadlineExceeded
from torture.files import CHECKOUT
from torture.machines.host.scratch import sandboxed
from torture.machines.lab.lab import Lab, LabSettings
from torture.machines.lab.saved_states import warm_directory

_END_DEADLINE_S = 10
_LINES_SHOWN = 20


class Stage:
    """A sandbox with a lab, in which one scene is played after the other.

    A scene is a function that is called with the `Lab` and a scratch folder, and leaves no machine.
    After one that failed the next has a sandbox of its own. The output of all is in `log`, and beside
    it lie the consoles of a scene that failed.
    """

    def __init__(self, log: Path) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._log = log

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def play(self, scene: str, *, scratch: Path, deadline_s: float) -> Any:
        """The result of the scene `module:function`.

        Raises `AssertionError` with the end of what it printed when it fails, `DeadlineExceeded` when
        it hangs.
        """
        process = self._process or self._begin()
        assert process.stdin is not None
        assert process.stdout is not None
        print(json.dumps({"scene": scene, "scratch": str(scratch)}), file=process.stdin, flush=True)
        readable, _, _ = select.select([process.stdout], [], [], deadline_s)
        answer = json.loads(process.stdout.readline() or "{}") if readable else {}
        if "returned" in answer:
            return answer["returned"]
        self._end()
        consoles = self._keep_logs(scratch)
        printed = self._log.read_text(errors="replace").splitlines()[-_LINES_SHOWN:]
        output = "\n".join([*printed, answer.get("failed", ""), f"consoles: {consoles}"])
        if not readable:
            raise DeadlineExceeded(f"{scene} did not end within {deadline_s:g} s: {output}")
        raise AssertionError(f"{scene} failed: {output}")

    def _keep_logs(self, scratch: Path) -> Path:
        """Copy a scene's logs to where they survive the session, as its scratch folder does not."""
        kept = self._log.with_name(f"{scratch.name}-consoles")
        for log in scratch.rglob("*.log"):
            copy = kept / log.relative_to(scratch)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(log, copy)
        return kept

    def _begin(self) -> subprocess.Popen[str]:
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                sandboxed((sys.executable, "-m", __name__)),
                cwd=CHECKOUT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        return self._process

    def _end(self) -> None:
        """End the sandbox and, with its namespaces, everything in it."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait(_END_DEADLINE_S)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def in_sandbox(scene: str, *, scratch: Path, log: Path, deadline_s: float) -> Any:
    """The same for a single scene."""
    with Stage(log) as stage:
        return stage.play(scene, scratch=scratch, deadline_s=deadline_s)


def main() -> None:
    """Called in the sandbox: play scene by scene, and answer what each returned."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever else is printed is no answer
    lab = Lab(LabSettings(warm_states=warm_directory()), say=lambda _text: None)
    for line in sys.stdin:
        order = json.loads(line)
        module, function = order["scene"].split(":")
        try:
            scene = getattr(importlib.import_module(module), function)
            answer = {"returned": scene(lab, Path(order["scratch"]))}
        except Exception:
            answer = {"failed": traceback.format_exc()}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
