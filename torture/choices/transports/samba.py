"""Files over SMB 3.1.1: Samba on a dataset, mounted by the client's own kernel.

A flush is an fsync of the file, as `strict sync` is on by default (smb.conf(5); Samba
source3/smbd/smb2_flush.c). A write with the write-through flag is followed by an fsync before its answer
(source3/smbd/smb2_write.c). The server syncs no rename, and the client's flush of a directory does
nothing: theory promises what it does with ksmbd (`torture/choices/transports/smb.py`).
"""

from __future__ import annotations

from dataclasses import replace

from torture.choices.transports.protocol import Transport
from torture.choices.transports.smb import GLOBAL, SHARE, Smb
from torture.choices.volumes import VolumeOptions
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep


class Samba(Smb):
    """One share, open to every user: each of them is root."""

    traits = replace(Smb.traits, nas_image="nas_samba")

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


CHOICE: Choice[Transport] = Choice(
    name="samba",
    value=Samba(),
    words="SMB (Samba)",
    explained="Samba, files directly; mounted by the client itself (3.1.1, `hard`)",
    joins=frozenset({Sweep.EVERY_TRANSPORT}),
    place=61,
)
