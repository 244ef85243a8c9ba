"""`python3 -m load prepare|write|read '<json job>'`: see `write.run` and `read.run` for the job's keys.

`prepare` is for applications alone: it makes their files durably before they start.
"""

from __future__ import annotations

import json
import os
import sys

EXIT_USAGE = 2


def main(arguments: list[str]) -> int:
    """Run a command; `write` talks over the job's `port`, `read` prints one JSON document."""
    if len(arguments) != 2 or arguments[0] not in ("prepare", "write", "read"):
        print("usage: python3 -m load prepare|write|read '<json job>'", file=sys.stderr)
        return EXIT_USAGE
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
        from . import read

        json.dump(read.run(job), sys.stdout, separators=(",", ":"))
        print()
        return 0
    from . import write
    from .channel import open_port

    return write.run(job, open_port(job["port"]))


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # Writers that hang in the kernel, and the listener, must not keep the process from ending.
    os._exit(code)
