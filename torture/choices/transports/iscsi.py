"""iSCSI: LIO, Linux's SCSI target, on a zvol or a file of a dataset.

Kernel Documentation/target/, drivers/target/target_core_iblock.c and target_core_file.c:
`targetcli` writes the same files, only slower.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from torture.choices.transports.protocol import (
    ADD_PATH,
    PATH_SCRIPTS,
    SECOND_HOST,
    Attachment,
    CompletedWrite,
    DiskSource,
    OfImage,
    OfZvol,
    Traits,
    Transport,
)
from torture.choices.volumes import IMAGE, SIZE_MIB, VolumeKind, VolumeOptions, zvol
from torture.facts.axes.away import Patience
from torture.facts.axes.axis import Choice, choices_beside
from torture.facts.axes.early import Early
from torture.facts.wire.disk_requests import DiskWire
from torture.facts.wire.iscsi_pdus import IscsiOnWire

IQN = "iqn.2003-01.org.linux-iscsi.nas:vm"
ISCSI_PORT = 3260
_SECTOR_BYTES = 512
_TARGET = "/sys/kernel/config/target"
_GROUP = f"{_TARGET}/iscsi/{IQN}/tpgt_1"


def _publish_script(
    *,
    kind: str,
    control: str,
    sector_bytes: int = _SECTOR_BYTES,
    takes_discards: bool = False,
    vendor: str = "",
    lun: int = 0,
    has_lun: bool = True,
) -> str:
    """Shell: backstore of a kind with these `control` words, target, LUN, demo-mode access, portal last.

    Without `has_lun` the LUN is left out.

    A LUN has its device's logical sectors unless another size is set before its export
    (drivers/target/target_core_configfs.c, `block_size_store`).
    """
    store = f"{_TARGET}/core/{kind}_0/vm"
    has_its_own = sector_bytes != _SECTOR_BYTES
    sectors = f"echo {sector_bytes} > {store}/attrib/block_size\n" if has_its_own else ""
    vendors = f"echo -n {vendor} > {store}/wwn/vendor_id\n" if vendor else ""
    link = _link_script(store, lun) if has_lun else ""
    discards = f"echo 1 > {store}/attrib/emulate_tpu\n" if takes_discards else ""
    return f"""set -eu
mkdir -p {store}
echo -n {control} > {store}/control
echo 1 > {store}/enable
{sectors}{discards}{vendors}echo -n torture-vm > {store}/wwn/vpd_unit_serial
mkdir -p {_GROUP}
{link}echo 0 > {_GROUP}/attrib/authentication
echo 1 > {_GROUP}/attrib/generate_node_acls
echo 0 > {_GROUP}/attrib/demo_mode_write_protect
mkdir -p {_GROUP}/np/0.0.0.0:{ISCSI_PORT}
echo 1 > {_GROUP}/enable
"""


def _link_script(store: str, lun: int) -> str:
    """Shell: make a backstore a LUN of the target."""
    return f"mkdir -p {_GROUP}/lun/lun_{lun}\nln -s {store} {_GROUP}/lun/lun_{lun}/vm\n"


_RESTART = (f"echo 0 > {_GROUP}/enable", f"echo 1 > {_GROUP}/enable")
"""A portal group that is off has no session (drivers/target/iscsi/iscsi_target_tpg.c)."""
_RELEASE = f"""set -eu
{_RESTART[0]}
rm {_GROUP}/lun/lun_*/vm
rmdir {_GROUP}/lun/lun_* {_TARGET}/core/*/vm
"""
"""Shell: end the sessions, then the LUN and its backstore, which holds the volume open."""


def attachment_of(nas_host: str, *, is_of_guest: bool = False, lun: int = 0) -> Attachment:
    """The disk of a LUN: the client's own kernel opens LUN 0, or its QEMU any, through libiscsi."""
    if is_of_guest:
        return IscsiOfGuest().attachment(nas_host=nas_host)
    source = DiskSource(
        attributes={"protocol": "iscsi", "name": f"{IQN}/{lun}"},
        within={"host": {"name": nas_host, "port": str(ISCSI_PORT)}},
    )
    return Attachment(source=source, device="/dev/vdb")


class Lun:
    """The common part of LIO's LUNs."""

    def wait_until_idle_script(self) -> str:
        """Shell: return once no initiator is logged in, fail after 20 s."""
        return (
            f"for i in $(seq 400); do test -z \"$(tr -d '\\0\\n' < {_GROUP}/dynamic_sessions)\" "
            "&& exit 0; sleep 0.05; done; echo 'a killed client is still logged in' >&2; exit 1"
        )

    def attachment(self, *, nas_host: str) -> Attachment:
        """QEMU opens it."""
        return attachment_of(nas_host)


def _lun_of(options: VolumeOptions) -> int:
    return int(options.order is Early.LUN_LATE)


# iSCSI: LIO's iblock on a zvol; the client's QEMU is the initiator, through libiscsi.
#
# LIO mirrors the zvol's own write cache, so the LUN is write-back
# (drivers/target/target_core_iblock.c).
class Iscsi(Lun, OfZvol):
    """One write-back LUN, any initiator: LIO mirrors the zvol's cache."""

    vendor: ClassVar[str] = ""
    """The LUN's vendor in place of LIO's own."""
    traits: ClassVar[Traits] = Traits(
        ports=(ISCSI_PORT,),
        sectors_bytes=(512, 4096),
        can_discard=True,
        target_scripts=_RESTART,
        release_script=_RELEASE,
    )

    def publish_script(self, options: VolumeOptions) -> str:
        """An iblock backstore."""
        return self._published(options)

    def _published(self, options: VolumeOptions, *, has_lun: bool = True) -> str:
        return _publish_script(
            kind="iblock",
            control=f"udev_path=$(readlink -f {zvol.DEVICE})",
            sector_bytes=options.sector_bytes,
            takes_discards=options.takes_discards,
            vendor=self.vendor,
            lun=_lun_of(options),
            has_lun=has_lun,
        )


# iSCSI by the client itself: open-iscsi over LIO's iblock on a zvol (iscsiadm(8), iscsid(8)).
#
# `replacement_timeout=-1`: commands wait for the session for ever, as a NAS that reboots needs.
# By default they fail after 120 s. The client tries to log in every 3 s, for ever. `iscsistart`
# would not log in again.
#
# The initiator takes a NAS for dead after 20 s without an answer to a ping, which is shorter
# than a reboot under emulation. A busy NAS needs some seconds for zeroes in bulk. Each
# connection that breaks under a command costs the command one of its five tries. After the last
# one its filesystem sees an I/O error (Linux `drivers/scsi/scsi_error.c`,
# `scsi_decide_disposition`).

_GUEST_DEVICE = "/dev/sda"
"""The client has no other SCSI disk."""
_WAITS_FOREVER = {
    "node.session.timeo.replacement_timeout": "-1",
    "node.conn[0].timeo.noop_out_interval": "1",
    "node.conn[0].timeo.noop_out_timeout": "20",
    "node.conn[0].timeo.login_timeout": "3",
}
_SESSION_WAITS = "echo $(sort -u /sys/class/iscsi_session/session*/recovery_tmo)"
"""Shell: the time for which the kernel keeps requests without a session (Linux
drivers/scsi/scsi_transport_iscsi.c, `session_recovery_timedout`)."""


@dataclass(frozen=True, kw_only=True)
class IscsiOfGuest(Iscsi):
    """One LUN; the client's kernel is the initiator.

    open-iscsi's defaults are pings of 5 and 5 s, and `replacement_timeout` 120 s (etc/iscsid.conf).
    """

    patience: Patience = Patience.FOREVER
    traits: ClassVar[Traits] = replace(
        Iscsi.traits,
        client_has_network=True,
        waits_s=((Patience.FOREVER, math.inf), (Patience.DEFAULTS, 130)),
        orders=frozenset({Early.LUN_LATE, Early.LUN_0_LATE}),
    )

    def waiting(self, patience: Patience) -> Transport:
        """The same with other timeouts."""
        return replace(self, patience=patience)

    def early_script(self, options: VolumeOptions) -> str:
        """All but the LUN."""
        return self._published(options, has_lun=False)

    def late_script(self, options: VolumeOptions) -> str:
        """The LUN."""
        return _link_script(f"{_TARGET}/core/iblock_0/vm", _lun_of(options))

    def wait_until_idle_script(self) -> str:
        """Return once no request is unread: a killed client has not logged out."""
        return OfZvol.wait_until_idle_script(self)

    def attachment(self, *, nas_host: str) -> Attachment:
        """A SCSI disk."""
        attached = self.attached(nas_host, settings=_WAITS_FOREVER)
        return replace(attached, patience=(_SESSION_WAITS, "off" if self._waits_forever else "120"))

    @property
    def _waits_forever(self) -> bool:
        return self.patience is Patience.FOREVER

    def attached(self, *hosts: str, settings: Mapping[str, str]) -> Attachment:
        """A SCSI disk for each address of the NAS; `settings`: those of a client that waits for ever."""
        settings = settings if self._waits_forever else {}
        nodes = [f"iscsiadm -m node -T {IQN} -p {host}:{ISCSI_PORT}" for host in hosts]
        logins = "\n".join(
            f"{node} -o {words}"
            for node in nodes
            for words in ("new", *(f"update -n '{k}' -v {v}" for k, v in settings.items()))
        )
        logins += "".join(f"\n{node} --login" for node in nodes)
        return Attachment(
            attach_script=f"""set -eu
modprobe iscsi_tcp
echo InitiatorName=iqn.1993-08.org.debian:01:client > /etc/iscsi/initiatorname.iscsi
sed -i 's/^iscsid.startup/#&/' /etc/iscsi/iscsid.conf
mkdir -p /run/lock/iscsi
pgrep -x iscsid > /dev/null || iscsid
{logins}
""",
            detach_script="\n".join(f"{node} --logout" for node in nodes),
            wire=DiskWire(protocol=IscsiOnWire(ISCSI_PORT)),
            device=_GUEST_DEVICE,
        )


# iSCSI over two addresses of the NAS: open-iscsi, and one disk of both by dm-multipath
# (multipathd(8)).
#
# A session that is lost must fail its commands soon, so that the other path gets them. So it waits
# for `replacement_timeout` alone, where `iscsi_guest` waits for ever (open-iscsi README, 8.1.1).
# Both together take 7 s, less than the 16 s of `linkfails`. Without any path requests wait
# (`no_path_retry`).
#
# dm-multipath sends a failed request to another path, and a flush is a request like others (Linux
# drivers/md/dm-mpath.c, `multipath_end_io`; drivers/md/dm-rq.c).
#
# By default multipathd sets each session's timeout to 5 s itself (libmultipath/defaults.h,
# `DEFAULT_FAST_IO_FAIL`). By its table requests to a LUN of LIO's wait for twelve checks of 5 s. Those to
# a vendor without an entry wait for none (libmultipath/hwtable.c).

_TWO_PATHS_SETTINGS = _WAITS_FOREVER | {
    "node.session.timeo.replacement_timeout": "2",
    "node.conn[0].timeo.noop_out_timeout": "5",
}
_MAPS_BY_DEFAULT = """\
defaults {
    find_multipaths yes
    user_friendly_names yes
}
"""
"""democratic-csi's, in its README."""
_MAPS_FOREVER = """\
defaults {
    find_multipaths no
    user_friendly_names yes
    polling_interval 1
    max_polling_interval 1
}
overrides {
    no_path_retry queue
}
"""
"""multipathd's own table has an entry for LIO, which beats `defaults`. Only `overrides` come after it
(multipath.conf(5))."""
_QUEUEING = "multipathd show maps format %Q 2>/dev/null | tail -n 1 | tr -d ' '"
"""Shell: how long requests without a path wait."""
_MULTIPATH = f"""\
modprobe dm-multipath
cat > /etc/multipath.conf << 'END'
{{maps}}END
pgrep -x multipathd > /dev/null || multipathd
end=$(($(date +%s) + 30))
while test $(date +%s) -lt $end; do
    paths=$(multipathd show paths format '%d %t' 2>/dev/null | grep -c active || true)
    queueing=$({_QUEUEING} || true)
    test "$paths $queueing" = "2 {{queueing}}" && exit
    sleep 0.05
done
multipathd show paths >&2
echo "requests without a path wait: ${{{{queueing:-unknown}}}}" >&2
exit 1
"""
"""Shell: return once the disk has two paths, and requests wait without one as the cell says."""


class IscsiOfTwoPaths(IscsiOfGuest):
    """One LUN at two addresses; multipathd makes one disk of both."""

    waits_by_default: ClassVar[str] = "12chk"
    """How long requests without a path wait by multipathd's table."""
    traits = replace(
        IscsiOfGuest.traits,
        can_discard=False,
        path_scripts=PATH_SCRIPTS,
        client_image="client_multipath",
        waits_s=((Patience.FOREVER, math.inf), (Patience.DEFAULTS, 75)),
        orders=frozenset(),
    )

    def publish_script(self, options: VolumeOptions) -> str:
        """The second address first."""
        return f"set -eu\n{ADD_PATH}{super().publish_script(options)}"

    def attachment(self, *, nas_host: str) -> Attachment:
        """A disk of device mapper."""
        attached = self.attached(nas_host, SECOND_HOST, settings=_TWO_PATHS_SETTINGS)
        maps, queueing = _MAPS_BY_DEFAULT, self.waits_by_default
        if self._waits_forever:
            maps, queueing = _MAPS_FOREVER, "on"
        return replace(
            attached,
            attach_script=attached.attach_script + _MULTIPATH.format(maps=maps, queueing=queueing),
            patience=(f"{_SESSION_WAITS} $({_QUEUEING})", f"5 {queueing}"),
            detach_script=f"multipath -f mpatha\n{attached.detach_script}",
            device="/dev/mapper/mpatha",
        )


class IscsiOfTwoPathsUnlisted(IscsiOfTwoPaths):
    """The same of a vendor that multipathd's table lacks, as TrueNAS is."""

    vendor = "TrueNAS"
    waits_by_default = "-"
    traits = replace(
        IscsiOfTwoPaths.traits, waits_s=((Patience.FOREVER, math.inf), (Patience.DEFAULTS, 15))
    )


# iSCSI from a file: LIO's fileio on an image in a dataset; the client's QEMU is the initiator.
#
# Without `fd_buffered_io` LIO opens the file with O_DSYNC and reports no write cache. Every
# write is in ZFS's log before it is completed, and the client never flushes
# (`fd_configure_device`, drivers/target/target_core_file.c).

_BYTES = SIZE_MIB * 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Fileio(Lun, OfImage):
    """One LUN on a file; `has_write_cache`: targetcli's `write_back=true`, which is its default."""

    has_write_cache: bool = False

    @property
    def traits(self) -> Traits:
        """Write-through or write-back."""
        completed = CompletedWrite.IN_ZFS if self.has_write_cache else CompletedWrite.IN_LOG
        return Traits(
            ports=(ISCSI_PORT,),
            volume=VolumeKind.DATASET,
            completed=completed,
            target_scripts=_RESTART,
            release_script=_RELEASE,
        )

    def publish_script(self, options: VolumeOptions) -> str:
        """A fileio backstore."""
        buffered = ",fd_buffered_io=1" if self.has_write_cache else ""
        control = f"fd_dev_name={IMAGE},fd_dev_size={_BYTES}{buffered}"
        return _publish_script(kind="fileio", control=control)

    def attachment(self, *, nas_host: str) -> Attachment:
        """A LUN whose cache is as set."""
        return replace(attachment_of(nas_host), has_write_cache=self.has_write_cache)


class FileioOnZvol(Iscsi):
    """One LUN on a zvol's node, `write_back=true`: the NAS's page cache stands before ZFS.

    Completed writes lie in the node's page cache (Linux `block/fops.c`), which ZFS does not see, so
    sync=always does not help. A flush becomes an fsync of the node, and this has to become a flush
    of the zvol.
    """

    traits = Traits(
        ports=(ISCSI_PORT,),
        completed=CompletedWrite.IN_PAGE_CACHE,
        target_scripts=_RESTART,
        release_script=_RELEASE,
    )

    def publish_script(self, options: VolumeOptions) -> str:
        """A fileio backstore on the node."""
        control = f"fd_dev_name=$(readlink -f {zvol.DEVICE}),fd_dev_size={_BYTES},fd_buffered_io=1"
        return _publish_script(kind="fileio", control=control)


CHOICES: tuple[Choice[Transport], ...] = choices_beside(
    __file__,
    {
        "iscsi": Iscsi(),
        "iscsi_guest": IscsiOfGuest(),
        "fileio": Fileio(),
        "fileio_wb": Fileio(has_write_cache=True),
        "fileio_wb_zvol": FileioOnZvol(),
        "iscsi_two": IscsiOfTwoPaths(),
        "iscsi_two_unlisted": IscsiOfTwoPathsUnlisted(),
    },
)
