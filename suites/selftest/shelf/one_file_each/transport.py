"""A transport of no machine: its client finds a directory."""

from __future__ import annotations

from collections.abc import Mapping

from torture.choices.transports.protocol import Attachment, Traits, Transport
from torture.choices.volumes import VolumeOptions
from torture.facts.axes.axis import Choice
from torture.facts.axes.fate import Fate
from torture.facts.axes.sync import Sync
from torture.oracles.verdict.guarantee import Guarantee


class Dummy(Transport):
    """Every script is one word, so that whoever runs it can be seen to."""

    traits = Traits(ports=(12345,))

    def make_volume_script(self, options: VolumeOptions) -> str:
        """Nothing is made."""
        return f"make-volume {options.sync}"

    def wait_for_volume_script(self) -> str:
        """Nothing is waited for."""
        return "wait-for-volume"

    def publish_script(self, options: VolumeOptions) -> str:
        """Nothing is published."""
        return "publish"

    def wait_until_idle_script(self) -> str:
        """There is nothing to wait for."""
        return "wait-until-idle"

    def let_go_script(self) -> str:
        """Nothing is held."""
        return "let-go"

    def cache_scripts(self) -> Mapping[str, str]:
        """There is one cache."""
        return {"dummy": "print-cache"}

    def attachment(self, *, nas_host: str) -> Attachment:
        """A disk of the guest's own making."""
        return Attachment(attach_script=f"attach {nas_host}", device="/dev/dummy0")

    def guarantee(self, *, sync: Sync, fate: Fate) -> Guarantee:
        """Data that is not stored cannot be lost."""
        return Guarantee.SAFE


CHOICE: Choice[Transport] = Choice(name="dummytransport", value=Dummy(), words="a dummy")
