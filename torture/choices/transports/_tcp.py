"""When a killed client can no longer reach the disks."""

from __future__ import annotations


def wait_until_read_script(port: int) -> str:
    """Shell: return once the NAS has read every byte that came to a port, fail after 20 s.

    A machine without power closes nothing: its connection stays, and its last bytes may lie in the
    socket (ss(8), Recv-Q). The deadline detects a server that hangs on them.
    """
    unread = (
        f"ss --no-header --tcp --numeric state established '( sport = :{port} )' | grep -v '^0 '"
    )
    return (
        f"for i in $(seq 400); do {unread} > /dev/null || exit 0; sleep 0.05; done; "
        f"echo 'requests of a killed client to port {port} are not read' >&2; exit 1"
    )
