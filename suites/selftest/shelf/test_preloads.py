"""The library that a client's QEMU loads first: stable writes over NFS."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
from pathlib import Path

from torture.files import CHECKOUT
from torture.machines.host.native import preload_library

_SOURCE = CHECKOUT / "torture" / "machines" / "lab" / "native" / "libnfs_stable.cpp"
_STAND_IN = """
#include <cstdio>
extern "C" int nfs_open(void *, const char *path, int flags, void **) {
    std::printf("%s %d\\n", path, flags);
    return 7;
}
"""
_OPENING = """
import ctypes, sys
ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_LOCAL)
print(ctypes.CDLL(None).nfs_open(None, b"/disk.raw", 2, None), flush=True)
ctypes.CDLL(None).fflush(None)
"""
_DEADLINE_S = 60


def test_it_is_built_once_and_asks_for_libnfs_by_its_name() -> None:
    library = preload_library(_SOURCE)
    assert preload_library(_SOURCE) == library
    assert ctypes.CDLL(str(library)).nfs_open(None, b"/f", 0, None) == -errno.ENOSYS


def test_a_file_is_opened_for_stable_writes(tmp_path: Path) -> None:
    """As QEMU does: libnfs comes later, and locally."""
    source, libnfs = tmp_path / "stand_in.cpp", tmp_path / "libnfs.so.13"
    source.write_text(_STAND_IN)
    build = ["g++", "-shared", "-fPIC", "-Wl,-soname,libnfs.so.13", str(source), "-o", str(libnfs)]
    subprocess.run(build, check=True, timeout=_DEADLINE_S)
    opened = subprocess.run(
        [sys.executable, "-c", _OPENING, str(libnfs)],
        env=os.environ | {"LD_PRELOAD": str(preload_library(_SOURCE))},
        capture_output=True,
        text=True,
        check=True,
        timeout=_DEADLINE_S,
    )
    assert sorted(opened.stdout.split("\n")) == ["", f"/disk.raw {2 | os.O_SYNC}", "7"]
