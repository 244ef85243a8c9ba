"""The sandbox of a trial worker: namespaces that end with it, together with all their processes.

A worker runs as the child of an init of its own process namespace. When the controller ends in any
way, `kill -9` included, `setpriv --pdeathsig` ends `unshare`, and `--kill-child` ends the init.
With the init the kernel ends every process in the namespace, such as QEMU and nbdkit
(pid_namespaces(7)). The network namespace with its bridge and taps goes with its last process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from torture.errors import HarnessError

PRIVATE = Path("/run/libvirt")
"""A folder in memory, one for each sandbox and gone with it. Sockets lie there, whose paths must be
short, and so does some state of libvirt, which has that place whatever its root."""

_MAKE_PRIVATE = f"""\
mkdir -p {PRIVATE} 2>/dev/null
mount -t tmpfs none {PRIVATE} 2>/dev/null || {{ mount -t tmpfs none /run && mkdir {PRIVATE}; }}
exec "$@"
"""

_TOOLS = ("setpriv", "unshare", "tini")
USER_NAMESPACES_HINT = (
    "run as root, or allow user namespaces: sudo sysctl -w kernel.unprivileged_userns_clone=1 "
    "user.max_user_namespaces=15000 (and kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu)"
)


def sandboxed(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command line that runs `argv` in a sandbox with all rights in it, until its parent ends.

    Raises `HarnessError` when a tool for it is missing.
    """
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise HarnessError(f"not installed: {', '.join(missing)}", hint="tools/run --setup-only")
    # not as the namespace's root: libvirt would take itself for privileged and drop groups, in vain
    user = () if os.geteuid() == 0 else ("--user", "--map-current-user", "--keep-caps")
    return (
        "setpriv", "--pdeathsig", "KILL", "--",
        "unshare", *user, "--net", "--mount", "--pid", "--fork", "--kill-child=KILL",
        "--mount-proc", "--",
        "tini", "-s", "--", "sh", "-c", _MAKE_PRIVATE, "sandbox", *argv,
    )  # fmt: skip


def sandbox_refusal() -> str | None:
    """Why this user cannot have a sandbox here, or None when a sandbox works."""
    try:
        completed = subprocess.run(
            sandboxed(("ip", "link", "set", "lo", "up")),
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, HarnessError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if completed.returncode == 0 else completed.stderr.strip() or "no reason given"
