"""`load serve`: read-backs one after the other, without the start of Python for each.

The host sends a line with a job, and gets a line with the end of its `load read`: exit code and
output. Each runs in a child, so it finds nothing of an earlier one in memory.
"""

from __future__ import annotations

import json
import os
import traceback

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from collections.abc import Callable


def run(port: int, read_back: Callable[[str], int]) -> int:
    """Obey until the host closes the port; `read_back` prints the document of a job."""
    _send(port, {"ready": True})
    with os.fdopen(os.dup(port), "rb") as lines:
        for line in lines:
            _send(port, _end_of(line.decode().strip(), read_back))
    return 0


def _end_of(job: str, read_back: Callable[[str], int]) -> dict[str, object]:
    outputs = [os.memfd_create(name, 0) for name in ("stdout", "stderr")]
    child = os.fork()
    if child == 0:
        _read_back_here(job, read_back, outputs)
    _, status = os.waitpid(child, 0)
    stdout, stderr = (_content(output) for output in outputs)
    code = os.waitstatus_to_exitcode(status)
    return {"exit_code": code if code >= 0 else 128 - code, "stdout": stdout, "stderr": stderr}


def _read_back_here(job: str, read_back: Callable[[str], int], outputs: list[int]) -> None:
    """In the child: it ends here, as the parent's code is not its own."""
    code = 1
    try:
        for descriptor, output in enumerate(outputs, start=1):
            os.dup2(output, descriptor)
        code = read_back(job)
    except BaseException:
        os.write(outputs[1], traceback.format_exc().encode())
    finally:
        os._exit(code)


def _content(output: int) -> str:
    with os.fdopen(output, "rb") as file:
        file.seek(0)
        return file.read().decode(errors="replace")


def _send(port: int, answer: dict[str, object]) -> None:
    left = json.dumps(answer, separators=(",", ":")).encode() + b"\n"
    while left:
        left = left[os.write(port, left) :]
