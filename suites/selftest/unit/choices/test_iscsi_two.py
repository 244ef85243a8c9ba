"""iSCSI over two paths: a session for each address of the NAS, and one disk of both."""

from __future__ import annotations

from torture.choices.matrix.axes import TRANSPORT
from torture.choices.volumes import VolumeOptions
from torture.facts.axes.sync import Sync


def test_a_client_logs_in_at_both_addresses_before_it_makes_one_disk() -> None:
    two, one = (TRANSPORT.choice(name).value for name in ("iscsi_two", "iscsi_guest"))
    attachment = two.attachment(nas_host="10.77.0.2")
    script = attachment.attach_script
    for host in ("10.77.0.2", "10.77.0.12"):
        assert f"-p {host}:3260 --login" in script
        assert (
            f"-p {host}:3260 -o update -n 'node.session.timeo.replacement_timeout' -v 2" in script
        )
        assert f"-p {host}:3260 --logout" in attachment.detach_script
    assert script.rindex("--login") < script.index("multipathd")
    assert attachment.device == "/dev/mapper/mpatha"
    assert two.traits.client_image == "client_multipath"
    alone = one.attachment(nas_host="10.77.0.2")
    assert alone.attach_script.count("--login") == alone.detach_script.count("--logout") == 1
    assert "'node.session.timeo.replacement_timeout' -v -1" in alone.attach_script
    assert one.traits.client_image == "client"


def test_the_nas_has_the_second_address_before_it_listens() -> None:
    two = TRANSPORT.choice("iscsi_two").value
    published = two.publish_script(VolumeOptions(sync=Sync.STANDARD))
    assert published.index("addr replace 10.77.0.12/24") < published.index("/np/0.0.0.0:3260")
    assert two.traits.path_scripts is not None
