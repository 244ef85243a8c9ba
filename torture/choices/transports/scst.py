"""iSCSI: SCST, the SCSI target of TrueNAS SCALE and 45Drives, on a zvol or a file of a dataset.

TrueNAS's middleware makes an extent on a zvol a `vdisk_blockio`, and one on a file a `vdisk_fileio`. It
never writes `write_through`, `nv_cache`, `o_direct` or `async` (truenas/middleware,
`etc_files/scst.conf.mako`). sysfs has the words of SCST's README.

A device reports a write cache and takes forced writes, unless it is set otherwise (SCST
`scst/src/dev_handlers/scst_vdisk.c`, `vdisk_caching_pg`). So theory gives it the guarantee of any disk
that is flushed. By source a flush of a file is `filemap_write_and_wait_range`, which does not reach ZFS's
log. With `o_direct=1` and `async=1` the client's reads failed, so there is no such choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from torture.choices.transports.iscsi import IQN, ISCSI_PORT, IscsiOfGuest, Lun
from torture.choices.transports.protocol import (
    Attachment,
    CompletedWrite,
    OfImage,
    OfZvol,
    Traits,
    Transport,
)
from torture.choices.volumes import IMAGE, VolumeKind, VolumeOptions, zvol
from torture.facts.axes.axis import Choice
from torture.facts.axes.sync import Sync

_MODULES = "/usr/lib/torture/scst"
_SYSFS = "/sys/kernel/scst_tgt"
_DEVICE = f"{_SYSFS}/devices/vm"
_DRIVER = f"{_SYSFS}/targets/iscsi"
_TARGET = f"{_DRIVER}/{IQN}"

_SERVE = f"""iscsi-scstd
echo "add_target {IQN}" > {_DRIVER}/mgmt
echo 32 > {_TARGET}/QueuedCommands
echo "add vm 0" > {_TARGET}/luns/mgmt
echo 1 > {_TARGET}/enabled
echo 1 > {_DRIVER}/enabled
"""
"""Shell: the daemon takes clients last, once the LUN is there."""
_END = f"""kill $(pidof iscsi-scstd)
for i in $(seq 400); do test -e {_TARGET} || exit 0; sleep 0.05; done
echo 'SCST did not end its target' >&2
exit 1
"""
"""Shell: without its daemon SCST closes all connections, and the target is gone (`iscsi-scst/kernel`)."""
_OF_TARGET = {"QueuedCommands": "32", "InitialR2T": "No", "NopInInterval": "30"}
"""A target's settings: the queue is TrueNAS's, the others are the defaults of its SCST."""
_SINCE_SCALE = "SCST as TrueNAS 25.10 has it"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Scst(Lun, Transport):
    """The common part of its devices."""

    handler: ClassVar[str]
    path: ClassVar[str]
    threads: ClassVar[str] = "8"
    """SCST's default; the middleware writes another number for a zvol."""

    traits_of_volume: ClassVar[Traits]
    image: str = "nas_scst"
    is_of_guest: bool = False
    """Whether the client's kernel is the initiator, and not its QEMU."""
    chosen: tuple[tuple[str, str], ...] = ()
    """Attributes of the device that TrueNAS leaves as they are."""

    @property
    def traits(self) -> Traits:
        """A disk with a write cache, unless an attribute takes that away."""
        completed = CompletedWrite.IN_ZFS if self._has_write_cache else CompletedWrite.IN_LOG
        is_kept = ("nv_cache", "1") in self.chosen
        return replace(
            self.traits_of_volume,
            completed=CompletedWrite.IN_ZFS if is_kept else completed,
            unflushed=frozenset({Sync.STANDARD} if is_kept else ()),
            client_has_network=self.is_of_guest,
            nas_image=self.image,
        )

    @property
    def _has_write_cache(self) -> bool:
        return not {"write_through", "nv_cache"} & dict(self.chosen).keys()

    def _attributes(self, sector_bytes: int) -> dict[str, str]:
        return {"blocksize": str(sector_bytes), "rotational": "0"} | dict(self.chosen)

    def publish_script(self, options: VolumeOptions) -> str:
        """The modules, the device with its attributes, and its target last."""
        attributes = self._attributes(options.sector_bytes)
        words = "; ".join(f"{name}={value}" for name, value in attributes.items())
        return f"""set -eu
mkdir -p /var/lib/scst/pr /var/lib/scst/vdev_mode_pages /var/lib/scst/dif_tags
modprobe -a scsi_mod libcrc32c
for module in scst scst_vdisk iscsi-scst; do insmod {_MODULES}/$module.ko; done
file={self.path}
echo "add_device vm filename=$file; {words}" > {_SYSFS}/handlers/{self.handler}/mgmt
echo {self.threads} > {_DEVICE}/threads_num
{_SERVE}"""

    def proofs(self, options: VolumeOptions) -> Mapping[str, tuple[str, str]]:
        """The attributes of its device, which SCST may have changed itself, and of its target."""
        kept = {"nv_cache": "0", "write_through": "0", "threads_num": self.threads}
        asked = kept | self._attributes(options.sector_bytes)
        return {
            "scst device": _printed(_DEVICE, asked),
            "scst target": _printed(_TARGET, _OF_TARGET),
        }

    def attachment(self, *, nas_host: str) -> Attachment:
        """The LUN of either initiator."""
        if self.is_of_guest:
            found = IscsiOfGuest().attachment(nas_host=nas_host)
        else:
            # `super()` does not know the new class that slots made
            found = Lun.attachment(self, nas_host=nas_host)
        return replace(found, has_write_cache=self._has_write_cache)


def _printed(folder: str, values: Mapping[str, str]) -> tuple[str, str]:
    """Shell that prints the first line of each file in sysfs, and the expected line."""
    files = " ".join(f"{folder}/{name}" for name in values)
    return f"echo $(head --quiet --lines 1 {files})", " ".join(values.values())


_TRAITS = Traits(
    ports=(ISCSI_PORT,),
    sectors_bytes=(512, 4096),
    target_scripts=(_END, f"set -eu\n{_SERVE}"),
    release_script=f"({_END}) && for handler in {_SYSFS}/handlers/vdisk_*io; do "
    f'echo "del_device vm" > $handler/mgmt 2> /dev/null || true; done; test ! -e {_DEVICE}',
)


class ScstZvol(_Scst, OfZvol):
    """A LUN on a zvol: flushes and forced writes become those of the zvol (`vdisk_blockio`)."""

    handler = "vdisk_blockio"
    path = f"$(readlink -f {zvol.DEVICE})"
    threads = "32"
    traits_of_volume = _TRAITS


class ScstFile(_Scst, OfImage):
    """A LUN on a file of a dataset (`vdisk_fileio`)."""

    handler = "vdisk_fileio"
    path = IMAGE
    traits_of_volume = replace(_TRAITS, volume=VolumeKind.DATASET)


CHOICES: tuple[Choice[Transport], ...] = (
    Choice(
        name="scst",
        value=ScstZvol(),
        words="iSCSI (SCST, on a zvol)",
        explained=f"{_SINCE_SCALE}, `vdisk_blockio` on a zvol; the client's QEMU is the initiator",
        place=24,
    ),
    Choice(
        name="scst_guest",
        value=ScstZvol(is_of_guest=True),
        words="iSCSI (SCST, on a zvol, open-iscsi)",
        explained="the same by the client's own kernel",
        place=25,
    ),
    Choice(
        name="scst_file",
        value=ScstFile(),
        words="iSCSI (SCST, on a file)",
        explained=f"{_SINCE_SCALE}, `vdisk_fileio` on a file of a dataset",
        place=26,
    ),
    Choice(
        name="scst_file_guest",
        value=ScstFile(is_of_guest=True),
        words="iSCSI (SCST, on a file, open-iscsi)",
        explained="the same by the client's own kernel",
        place=27,
    ),
    Choice(
        name="scst_file_through",
        value=ScstFile(chosen=(("write_through", "1"),)),
        words="iSCSI (SCST, on a file, write-through)",
        explained="the same with `write_through=1`: SCST opens the file with O_DSYNC",
        place=28,
    ),
    Choice(
        name="scst_file_nv",
        value=ScstFile(chosen=(("nv_cache", "1"),)),
        words="iSCSI (SCST, on a file, nv_cache)",
        explained="the same with `nv_cache=1`: SCST reports no write cache, and flushes nothing",
        place=29,
    ),
    Choice(
        name="scst_file_head",
        value=ScstFile(image="nas_scst_head"),
        words="iSCSI (SCST's head, on a file)",
        explained="the same by SCST as its own project had it on 2026-08-21",
        place=33,
    ),
    Choice(
        name="scst_file_synced",
        value=ScstFile(image="nas_scst_synced"),
        words="iSCSI (SCST with an fsync, on a file)",
        explained="the same with a patch: a flush and a forced write end with `vfs_fsync_range`",
        place=34,
    ),
)
