"""NVMe over TCP with native multipath and without: the client's kernel gets the setting as it boots."""

from __future__ import annotations

import pytest

from torture.choices.matrix.axes import TRANSPORT
from torture.choices.volumes import VolumeOptions
from torture.facts.axes.sync import Sync


@pytest.mark.parametrize(
    ("name", "parameter", "words"),
    [
        ("nvme_tcp", "Y", ""),
        ("nvme_tcp_single", "N", "nvme_core.multipath=N"),
        ("nvme_tcp_two", "Y", ""),
    ],
)
def test_a_client_attaches_with_the_multipath_its_name_says_or_not_at_all(
    name: str, parameter: str, words: str
) -> None:
    attachment = TRANSPORT.choice(name).value.attachment(nas_host="10.0.0.1")
    assert attachment.kernel_words == words
    script = attachment.attach_script
    check = f'test "$(cat /sys/module/nvme_core/parameters/multipath)" = {parameter} || '
    assert check in script
    assert script.index(check) < script.index("/dev/nvme-fabrics")
    assert script.count("/dev/nvme-fabrics") == (2 if name == "nvme_tcp_two" else 1)


def test_a_nas_with_two_paths_keeps_the_second_address_when_the_first_one_goes() -> None:
    two, one = (TRANSPORT.choice(name).value for name in ("nvme_tcp_two", "nvme_tcp"))
    published = two.publish_script(VolumeOptions(sync=Sync.STANDARD))
    assert published.index("promote_secondaries") < published.index("addr replace 10.77.0.12/24")
    assert "ip addr" not in one.publish_script(VolumeOptions(sync=Sync.STANDARD))
    assert "traddr=10.77.0.12," in two.attachment(nas_host="10.77.0.2").attach_script
    assert one.traits.path_scripts is None
    assert two.traits.path_scripts is not None
    lose, regain = two.traits.path_scripts
    assert "addr del" in lose
    assert "addr add" in regain
