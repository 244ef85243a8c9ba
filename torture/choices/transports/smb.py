"""Files over SMB 3.1.1: ksmbd or Samba on a dataset, mounted by the client's own kernel.

Files over SMB 3.1.1: ksmbd on a dataset, mounted by the client's own kernel.

A client that reconnects repeats its requests in flight and opens its files anew. Answered and
unflushed writes are lost without a report (Linux fs/smb/client/smb2pdu.c, `smb2_reconnect`).

A flush is an fsync of the file (fs/smb/server/vfs.c, `ksmbd_vfs_fsync`). A flush of a directory
does nothing (fs/smb/client/cifsfs.c, `cifs_dir_fsync`), and the server syncs no rename. So a rename
is lost although the client did all it could. Around a small O_DSYNC write `fs/netfs` of kernels from
6.12.92 on sends bytes of the client's memory (docs/findings.md).

Modes are the mount's, and with `noserverino` each name has an inode number of its own.
mount.cifs(8), ksmbd.conf(5). `nobrl`: no byte-range locks, which no load here takes.

Files over SMB 3.1.1: Samba on a dataset, mounted by the client's own kernel.

A flush is an fsync of the file, as `strict sync` is on by default (smb.conf(5); Samba
source3/smbd/smb2_flush.c). A write with the write-through flag is followed by an fsync before its answer
(source3/smbd/smb2_write.c). The server syncs no rename, and the client's flush of a directory does
nothing: theory promises what it does with ksmbd (`torture/choices/transports/smb.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from torture.choices.transports.protocol import Attachment, Mount, OfDataset, Traits, Transport
from torture.choices.volumes import DIRECTORY, VolumeKind, VolumeOptions
from torture.facts.axes.away import Patience
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep
from torture.facts.wire.files_on_wire import FileWire
from torture.facts.wire.smb2_messages import Smb2OnWire

_PORT = 445
_NAME = "vm"
GLOBAL = """[global]
    map to guest = bad user
    server min protocol = SMB3_11"""
SHARE = f"""[{_NAME}]
    path = {DIRECTORY}
    read only = no
    guest ok = yes
    force user = root
    force group = root"""
"""Words that ksmbd.conf(5) and smb.conf(5) have in common."""
_CHOSEN = "cache=strict,nobrl,noserverino"
_WAITS_FOREVER = ",hard,echo_interval=1"
"""`echo_interval=1`: the client notices a dead server after some seconds, rather than minutes."""

_ADVERTISED = """\
c=$(sed -n 's/.*[Ss]erver capabilities: *//p' /proc/fs/cifs/DebugData | head -n 1)
echo smb_persistent_handles=$(( (${c:-0} >> 4) & 1 ))"""
"""SMB2_GLOBAL_CAP_PERSISTENT_HANDLES is 0x10 (MS-SMB2, 2.2.4)."""


@dataclass(frozen=True, kw_only=True)
class Smb(OfDataset):
    """One share, open to every user.

    Answered writes are only in ZFS's memory, and with sync=standard so are the directories.

    By default the mount is soft: after three echoes of 60 s without an answer a call fails (Linux
    fs/smb/client/connect.c, `server_unresponsive`).
    """

    patience: Patience = Patience.FOREVER
    traits: ClassVar[Traits] = Traits(
        ports=(_PORT,),
        volume=VolumeKind.DATASET,
        gives_files=True,
        client_has_network=True,
        is_metadata_volatile=True,
        keeps_inodes=False,
        waits_s=((Patience.FOREVER, math.inf), (Patience.DEFAULTS, 180)),
    )

    def waiting(self, patience: Patience) -> Transport:
        """The same with other options of the mount."""
        return replace(self, patience=patience)

    def publish_script(self, options: VolumeOptions) -> str:
        """A share, and the daemon that answers its upcalls."""
        return f"""set -eu
modprobe ksmbd
mkdir -p /etc/ksmbd /run/lock
cat > /etc/ksmbd/ksmbd.conf << 'END'
{GLOBAL}
{SHARE}
END
touch /etc/ksmbd/ksmbdpwd.db
ksmbd.mountd
"""

    def attachment(self, *, nas_host: str) -> Attachment:
        """A mounted directory."""
        is_forever = self.patience is Patience.FOREVER
        return Attachment(
            mount=Mount(
                kind="cifs",
                source=f"//{nas_host}/{_NAME}",
                needed="guest,vers=3.1.1",
                chosen=_CHOSEN + (_WAITS_FOREVER if is_forever else ""),
                waits=frozenset({"hard"} if is_forever else {"soft", "echo_interval=60"}),
            ),
            wire=FileWire(protocol=Smb2OnWire(_PORT)),
            advertised_script=_ADVERTISED,
        )


_END_SAMBA = (
    "pkill -x smbd; for i in $(seq 400); do ! pgrep -x smbd > /dev/null && break; sleep 0.05; done; "
    "! pgrep -x smbd > /dev/null"
)
"""Shell: its parent ends the server of each client (smbd(8))."""


class Samba(Smb):
    """One share, open to every user: each of them is root."""

    traits = replace(Smb.traits, nas_image="nas_samba", release_script=_END_SAMBA)

    def publish_script(self, options: VolumeOptions) -> str:
        """The configuration, and the server."""
        return f"""set -eu
cat > /etc/samba/smb.conf << 'END'
{GLOBAL}
    server role = standalone server
    guest account = root
    smb ports = 445
    disable netbios = yes
    load printers = no
    printing = bsd
    log level = 0
{SHARE}
END
mkdir -p /run/samba /var/log/samba
smbd --daemon
"""


CHOICES: tuple[Choice[Transport], ...] = (
    Choice(
        name="smb",
        value=Smb(),
        words="SMB",
        explained="Linux's ksmbd, files directly; mounted by the client itself (3.1.1, `hard`)",
        joins=frozenset({Sweep.EVERY_TRANSPORT}),
        place=60,
    ),
    Choice(
        name="samba",
        value=Samba(),
        words="SMB (Samba)",
        explained="Samba, files directly; mounted by the client itself (3.1.1, `hard`)",
        joins=frozenset({Sweep.EVERY_TRANSPORT, Sweep.OUTAGES, Sweep.OUTAGES_FOR_MINUTES}),
        place=61,
    ),
)
