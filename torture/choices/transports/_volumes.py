"""The common part of transports of one kind of volume: its scripts, its caches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from torture.choices.transports.protocol import Transport
from torture.choices.volumes import VolumeOptions, dataset, zvol
from torture.shell import wait_for_path, write_cache_of


class OfZvol(Transport, Protocol):
    """A transport of a zvol."""

    def make_volume_script(self, options: VolumeOptions) -> str:
        """A zvol."""
        return zvol.make_script(options)

    def wait_for_volume_script(self) -> str:
        """Return once its device is there; fail after 20 s."""
        return wait_for_path(zvol.DEVICE)

    def cache_scripts(self) -> Mapping[str, str]:
        """The zvol's cache."""
        return {"zvol": write_cache_of(zvol.DEVICE)}


class OfDataset(Transport, Protocol):
    """A transport of a dataset and its files."""

    def make_volume_script(self, options: VolumeOptions) -> str:
        """A dataset."""
        return dataset.make_script(options)

    def wait_for_volume_script(self) -> str:
        """Its mount."""
        return dataset.wait_script()

    def cache_scripts(self) -> Mapping[str, str]:
        """None on the NAS: where the client has a disk, that disk shows it."""
        return {}


class OfImage(OfDataset, Protocol):
    """A transport of an image in a dataset."""

    def make_volume_script(self, options: VolumeOptions) -> str:
        """An image in a dataset."""
        return dataset.make_image_script(options)

    def wait_for_volume_script(self) -> str:
        """Wait for the image: a target might make an empty one in its place (O_CREAT, as LIO does)."""
        return dataset.wait_for_image_script()
