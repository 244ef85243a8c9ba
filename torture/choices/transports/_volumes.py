"""The common part of transports of one kind of volume: its scripts, its caches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from torture.choices.transports.protocol import Transport
from torture.choices.volumes import DIRECTORY, IMAGE, SIZE_MIB, VOLUME, VolumeOptions, zvol
from torture.shell import wait_for_path, write_cache_of

_WAIT_FOR_MOUNT = (
    f"for i in $(seq 400); do mountpoint -q {DIRECTORY} && break; sleep 0.05; done; "
    f"mountpoint -q {DIRECTORY} || {{ echo '{DIRECTORY} is not mounted after 20 s' >&2; exit 1; }}"
)
"""An earlier export would offer an empty directory of the NAS's own root, without an error."""


class OfZvol(Transport, Protocol):
    """A transport of a zvol: a block device of the pool (zvol in zfs-create(8))."""

    def make_volume_script(self, options: VolumeOptions) -> str:
        """Make the zvol, sparse, wait for its device, and insist on its write cache."""
        return "\n".join(
            (
                "set -eu",
                f"zfs create -s -V {SIZE_MIB}M {options.words} {VOLUME}",
                wait_for_path(zvol.DEVICE),
                f'test "$({write_cache_of(zvol.DEVICE)})" = "write back"',
            )
        )

    def wait_for_volume_script(self) -> str:
        """Return once its device is there; fail after 20 s."""
        return wait_for_path(zvol.DEVICE)

    def cache_scripts(self) -> Mapping[str, str]:
        """The zvol's cache."""
        return {"zvol": write_cache_of(zvol.DEVICE)}


class OfDataset(Transport, Protocol):
    """A transport of a dataset and its files."""

    def make_volume_script(self, options: VolumeOptions) -> str:
        """Make the dataset, mounted."""
        return f"set -eu; zfs create {options.words} {VOLUME}; {_WAIT_FOR_MOUNT}"

    def wait_for_volume_script(self) -> str:
        """Its mount."""
        return _WAIT_FOR_MOUNT

    def cache_scripts(self) -> Mapping[str, str]:
        """None on the NAS: where the client has a disk, that disk shows it."""
        return {}


class OfImage(OfDataset, Protocol):
    """A transport of a sparse image in a dataset."""

    def make_volume_script(self, options: VolumeOptions) -> str:
        """Make the image in a dataset."""
        made = OfDataset.make_volume_script(self, options)
        return f"{made}; truncate -s {SIZE_MIB}M {IMAGE}; sync -f {IMAGE}"

    def wait_for_volume_script(self) -> str:
        """Wait for the image: a target might make an empty one in its place (O_CREAT, as LIO does)."""
        return f"{_WAIT_FOR_MOUNT}; test -e {IMAGE} || {{ echo '{IMAGE} is gone' >&2; exit 1; }}"
