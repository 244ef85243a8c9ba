"""The sandbox of a trial worker: namespaces that die with it, and take everything in them along.

A worker runs as the child of an init of its own process namespace. When the controller ends in any
way, `kill -9` included, `setpriv --pdeathsig` ends `unshare`, `--kill-child` ends the init, and with
the init the kernel ends every process in the namespace (pid_namespaces(7)): QEMU, nbdkit, all. The
network namespace with its bridge and taps goes with its last process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from torture.errors import HarnessError

PRIVATE = Path("/run/libvirt")
"""A folder that every sandbox has for itself, in memory, gone with it: for sockets, whose paths must be
short, and for libvirt, which keeps some state there wherever its root is."""

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
    """The command line that runs `argv` in a sandbox, with all rights in it, tied to its parent's life.

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
    """Why this user cannot have a sandbox here, or None when they can."""
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
