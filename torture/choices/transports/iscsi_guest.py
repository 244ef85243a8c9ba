"""iSCSI by the client itself: open-iscsi over LIO's iblock on a zvol (iscsiadm(8), iscsid(8)).

`replacement_timeout=-1`: commands wait for the session for ever, as a NAS that reboots needs. By
default they fail after 120 s. The client tries to log in every 3 s, for ever. `iscsistart` would
not log in again.

The initiator takes a NAS for dead after 20 s without an answer to a ping, which is shorter than a
reboot under emulation. A busy NAS needs some seconds for zeroes in bulk. Each connection that
breaks under a command costs the command one of its five tries. After the last one its filesystem
sees an I/O error (Linux `drivers/scsi/scsi_error.c`, `scsi_decide_disposition`).
"""

from __future__ import annotations

from torture.choices.transports import _lio
from torture.choices.transports._volumes import OfZvol
from torture.choices.transports.iscsi import Iscsi
from torture.choices.transports.protocol import Attachment, Traits, Transport
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep
from torture.facts.wire.disk_requests import DiskWire
from torture.facts.wire.iscsi_pdus import IscsiOnWire

_DEVICE = "/dev/sda"
"""The client has no other SCSI disk."""
_SETTINGS = {
    "node.session.timeo.replacement_timeout": "-1",
    "node.conn[0].timeo.noop_out_interval": "1",
    "node.conn[0].timeo.noop_out_timeout": "20",
    "node.conn[0].timeo.login_timeout": "3",
}


class IscsiOfGuest(Iscsi):
    """One LUN; the client's kernel is the initiator."""

    traits = Traits(
        ports=(_lio.PORT,), sectors_bytes=(512, 4096), can_discard=True, client_has_network=True
    )

    def wait_until_idle_script(self) -> str:
        """Return once no request is unread: a killed client has not logged out."""
        return OfZvol.wait_until_idle_script(self)

    def attachment(self, *, nas_host: str) -> Attachment:
        """A SCSI disk."""
        node = f"iscsiadm -m node -T {_lio.IQN} -p {nas_host}:{_lio.PORT}"
        settings = "\n".join(f"{node} -o update -n '{k}' -v {v}" for k, v in _SETTINGS.items())
        return Attachment(
            attach_script=f"""set -eu
modprobe iscsi_tcp
echo InitiatorName=iqn.1993-08.org.debian:01:client > /etc/iscsi/initiatorname.iscsi
sed -i 's/^iscsid.startup/#&/' /etc/iscsi/iscsid.conf
mkdir -p /run/lock/iscsi
iscsid
{node} -o new
{settings}
{node} --login
""",
            detach_script=f"{node} --logout",
            wire=DiskWire(protocol=IscsiOnWire(_lio.PORT)),
            device=_DEVICE,
        )


CHOICE: Choice[Transport] = Choice(
    name="iscsi_guest",
    value=IscsiOfGuest(),
    words="iSCSI (open-iscsi)",
    explained="the same by the client's own kernel, open-iscsi",
    joins=frozenset({Sweep.TRANSPORTS, Sweep.EVERY_TRANSPORT}),
    place=10,
)
