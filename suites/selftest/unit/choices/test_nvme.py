"""NVMe over TCP with native multipath and without: the client's kernel gets the setting as it boots."""

from __future__ import annotations

import pytest

from torture.choices.matrix.axes import TRANSPORT


@pytest.mark.parametrize(
    ("name", "parameter", "words"),
    [("nvme_tcp", "Y", ""), ("nvme_tcp_single", "N", "nvme_core.multipath=N")],
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
