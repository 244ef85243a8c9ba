"""iSCSI over two addresses of the NAS: open-iscsi, and one disk of both by dm-multipath (multipathd(8)).

A session that is lost must fail its commands soon, so that the other path gets them. So it waits for
`replacement_timeout` alone, where `iscsi_guest` waits for ever (open-iscsi README, 8.1.1). Both
together take 7 s, less than the 16 s of `linkfails`. Without any path requests wait (`no_path_retry`).

dm-multipath sends a failed request to another path, and a flush is a request like others (Linux
drivers/md/dm-mpath.c, `multipath_end_io`; drivers/md/dm-rq.c).
"""

from __future__ import annotations

from dataclasses import replace

from torture.choices.transports.iscsi import GUEST_SETTINGS, IscsiOfGuest
from torture.choices.transports.protocol import (
    ADD_PATH,
    PATH_SCRIPTS,
    SECOND_HOST,
    Attachment,
    Transport,
)
from torture.choices.volumes import VolumeOptions
from torture.facts.axes.axis import Choice

_SETTINGS = GUEST_SETTINGS | {
    "node.session.timeo.replacement_timeout": "2",
    "node.conn[0].timeo.noop_out_timeout": "5",
}
_DEVICE = "/dev/mapper/mpatha"
_MULTIPATH = """\
modprobe dm-multipath
cat > /etc/multipath.conf << 'END'
defaults {
    find_multipaths no
    user_friendly_names yes
    no_path_retry queue
    polling_interval 1
    max_polling_interval 1
}
END
multipathd
for try in $(seq 400); do
    test "$(multipathd show paths format '%d %t' 2>/dev/null | grep -c active)" = 2 && exit
    sleep 0.05
done
multipathd show paths >&2
exit 1
"""
"""Shell: return once the disk has two paths."""


class IscsiOfTwoPaths(IscsiOfGuest):
    """One LUN at two addresses; multipathd makes one disk of both."""

    traits = replace(
        IscsiOfGuest.traits,
        can_discard=False,
        path_scripts=PATH_SCRIPTS,
        client_image="client_multipath",
    )

    def publish_script(self, options: VolumeOptions) -> str:
        """The second address first."""
        return f"set -eu\n{ADD_PATH}{super().publish_script(options)}"

    def attachment(self, *, nas_host: str) -> Attachment:
        """A disk of device mapper."""
        attached = self.attached(nas_host, SECOND_HOST, settings=_SETTINGS)
        return replace(
            attached,
            attach_script=attached.attach_script + _MULTIPATH,
            detach_script=f"multipath -f mpatha\n{attached.detach_script}",
            device=_DEVICE,
        )


CHOICE: Choice[Transport] = Choice(
    name="iscsi_two",
    value=IscsiOfTwoPaths(),
    words="iSCSI (two paths)",
    explained="open-iscsi to two addresses, and dm-multipath; `linkfails` takes the first one away",
    place=11,
)
