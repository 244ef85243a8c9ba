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
from typing import Any, ClassVar

from torture.choices.transports.iscsi import IQN, ISCSI_PORT, attachment_of
from torture.choices.transports.protocol import (
    Attachment,
    CompletedWrite,
    OfImage,
    OfImageOver,
    OfZvol,
    Traits,
    Transport,
)
from torture.choices.volumes import IMAGE, VolumeKind, VolumeOptions, zvol
from torture.facts.axes.axis import Choice, choice_of, table_beside
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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Scst(Transport):
    """The common part of its devices. `scst.toml` has them all."""

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
        cached = self.traits_of_volume.completed
        is_kept = ("nv_cache", "1") in self.chosen
        return replace(
            self.traits_of_volume,
            completed=cached if is_kept or self._has_write_cache else CompletedWrite.IN_LOG,
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
        found = attachment_of(nas_host, is_of_guest=self.is_of_guest)
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


@dataclass(frozen=True, kw_only=True, slots=True)
class ScstFileOver(OfImageOver, ScstFile):
    """A LUN on a file of another filesystem, which has a page cache and a journal of its own."""

    kind: str
    traits_of_volume = replace(
        _TRAITS, release_script="", completed=CompletedWrite.IN_PAGE_CACHE, moves_blocks=True
    )


def _device(row: Mapping[str, Any]) -> _Scst:
    chosen = {
        "image": row.get("image", "nas_scst"),
        "is_of_guest": row.get("by_guest", False),
        "chosen": tuple(row.get("attributes", {}).items()),
    }
    own = {"zvol": ScstZvol, "file": ScstFile}.get(row["on"])
    return own(**chosen) if own else ScstFileOver(kind=row["on"], **chosen)


CHOICES: tuple[Choice[Transport], ...] = tuple(
    choice_of(row, _device(row)) for row in table_beside(__file__)["devices"]
)
