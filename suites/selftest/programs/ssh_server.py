"""An SSH server on loopback for one test: own keys and configuration, and the user who runs the test."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Self

from torture.deadlines import wait_for

_DEADLINE_S = 30
_CONFIGURATION = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
AuthenticationMethods publickey
PidFile none
StrictModes no
UsePAM no
Subsystem sftp internal-sftp
"""
_START = """\
[ "$(id -u)" -ne 0 ] || { mount -t tmpfs none /run && mkdir /run/sshd; }
exec "$@"
"""
"""As root, sshd changes into an empty folder that only its service makes."""


def sshd_path() -> str | None:
    """The server's program, which may be missing: its package would open port 22 of a whole host."""
    return shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")


class SshServer:
    """The server; it ends with the context, with every process that a client started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.user = pwd.getpwuid(os.getuid()).pw_name
        for name in ("host", "user"):
            key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(key, check=True, timeout=_DEADLINE_S)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        known = f"[127.0.0.1]:{self.port} {(folder / 'host.pub').read_text()}"
        (folder / "known_hosts").write_text(known)
        configuration = folder / "sshd_config"
        configuration.write_text(_CONFIGURATION.format(port=self.port, folder=folder))
        sshd = sshd_path()
        assert sshd is not None
        own = () if os.getuid() == 0 else ("--user", "--map-current-user", "--keep-caps")
        with (folder / "sshd.log").open("wb") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", "unshare", *own, "--mount", "--pid", "--fork",
                 "--kill-child=KILL", "--mount-proc", "--", "sh", "-c", _START, "sh",
                 sshd, "-D", "-e", "-f", str(configuration)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def words(self) -> list[str]:
        """The beginning of a command of ssh(1) that reaches the server, and no other."""
        options = {
            "IdentityFile": str(self.folder / "user"),
            "UserKnownHostsFile": str(self.folder / "known_hosts"),
            "StrictHostKeyChecking": "yes",
            "IdentitiesOnly": "yes",
            "BatchMode": "yes",
        }
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return ["ssh", "-F", "none", "-p", str(self.port), *words, f"{self.user}@127.0.0.1"]

    def __enter__(self) -> Self:
        wait_for(self._answers, what="sshd", deadline_s=_DEADLINE_S)
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(_DEADLINE_S)

    def _answers(self) -> bool | None:
        assert self._process.poll() is None, (self.folder / "sshd.log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0 or None
