"""The proofs of a hypervisor's mode, asked of a real QEMU: a planted wrong mode is refused."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from torture.choices.matrix.cells import TRANSPORT, Cell
from torture.choices.transports.protocol import VmImage

_MODES = ("cachenone", "cachenone-threads", "cachenone-native", "writeback", "writeback-threads")


def _image_of(mode: str) -> VmImage:
    words = f"-{mode}".replace("-cachenone", "")
    cell = Cell.parse(f"nfs4-rawimage{words}-standard-noslog-ext4-nasonly")
    image = cell[TRANSPORT].attachment(nas_host="").image
    assert image is not None
    return image


def _here(script: str, folder: Path) -> str:
    """The script with the guest's files and its NBD device in a folder of the host."""
    return re.sub(r"/run/(?=store|hypervisor)", f"{folder}/", script).replace(
        "--connect=/dev/nbd0", f"--socket={folder}/nbd --persistent"
    )


@contextmanager
def _opened(mode: str, folder: Path) -> Iterator[None]:
    """QEMU has the image open in this mode, and has written to it."""
    (folder / "store").mkdir()
    (folder / "store" / "disk.raw").write_bytes(bytes(1 << 20))
    _, _, command = _here(_image_of(mode).open_script, folder).partition("qemu-nbd ")
    command, _, _ = command.partition("\nfor ")
    subprocess.run(["sh", "-c", f"qemu-nbd {command}"], check=True, timeout=20)
    try:
        url = f"nbd+unix:///?socket={folder}/nbd"
        write = ["qemu-io", "-f", "raw", "-c", "write 0 64k", url]
        subprocess.run(write, check=True, capture_output=True, timeout=20)
        yield
    finally:
        pid = (folder / "hypervisor.pid").read_text().strip()
        subprocess.run(["kill", pid], check=True)


def _wrong_in(claimed: str, folder: Path) -> set[str]:
    """The proofs that the open image does not pass, if it claims this mode."""
    proofs = dict(_image_of(claimed).proofs)
    del proofs["QEMU of the hypervisor"]  # the host has another one
    return {name for name, (script, line) in proofs.items() if _printed(script, folder) != line}


def _printed(script: str, folder: Path) -> str:
    shell = ["sh", "-c", _here(script, folder)]
    return subprocess.run(shell, capture_output=True, text=True, timeout=20).stdout.strip()


@pytest.mark.parametrize("mode", _MODES)
def test_the_proofs_tell_each_mode_from_the_others(mode: str, tmp_path: Path) -> None:
    with _opened(mode, tmp_path):
        wrong = {claimed: _wrong_in(claimed, tmp_path) for claimed in _MODES}
    cache, *aio = mode.split("-")
    for claimed, names in wrong.items():
        own_cache, *own_aio = claimed.split("-")
        assert ("O_DIRECT of the image" in names) is (own_cache != cache)
        assert ("engine of the image" in names) is (own_aio != aio)
