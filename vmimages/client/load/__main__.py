"""`python3 -m load prepare|write|read '<json job>'`: see `write.run` and `read.run` for the job's keys.

`prepare` is for applications alone: it makes their files durably before they start.
`python3 -m load serve PORT` reads back for as long as the host asks.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from typing import Any

EXIT_USAGE = 2


def main(arguments: list[str]) -> int:
    """Run a command; `write` talks over the job's `port`, `read` prints one JSON document."""
    if len(arguments) != 2 or arguments[0] not in ("prepare", "write", "read", "serve"):
        usage = "usage: python3 -m load prepare|write|read '<json job>' | serve PORT"
        print(usage, file=sys.stderr)
        return EXIT_USAGE
    if arguments[0] == "serve":
        return _serve(arguments[1])
    try:
        job = json.loads(arguments[1])
    except json.JSONDecodeError as error:
        print(f"the job is no JSON: {error}", file=sys.stderr)
        return EXIT_USAGE
    if arguments[0] == "prepare":
        from .applications import application_of

        application_of(job).prepare()
        return 0
    if arguments[0] == "read":
        return _print_read_back(job)
    from . import write
    from .channel import open_port

    return write.run(job, open_port(job["port"]))


def _print_read_back(job: dict[str, Any]) -> int:
    from . import read

    json.dump(read.run(job), sys.stdout, separators=(",", ":"))
    print(flush=True)
    return 0


def _serve(port: str) -> int:
    from . import serve  # the children find `read` imported
    from .channel import open_port

    return serve.run(open_port(port), lambda job: _print_read_back(json.loads(job)))


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # Writers that hang in the kernel, and the listener, must not keep the process from ending.
    os._exit(code)
