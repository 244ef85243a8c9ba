"""One libvirt connection of this process, by default to an embedded driver that needs no daemon.

Facts behind the configuration (libvirt 9.0, docs/drvqemu.rst): the embedded driver takes its
settings from `<root>/etc/qemu.conf`. As root, namespace root included, it would otherwise hand
consoles to `virtlogd` and change the owner of every file. One root serves one process, and socket
paths below it must stay under 108 characters.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from torture.errors import HarnessError

_QEMU_CONF = """\
stdio_handler = "file"
security_driver = "none"
namespaces = []
cgroup_controllers = []
dynamic_ownership = 0
remember_owner = 0
"""

_QEMU_CONF_OF_ROOT = _QEMU_CONF + 'user = "+0"\ngroup = "+0"\n'

_loop_lock = threading.Lock()
_loop_started = False


def _start_event_loop() -> None:
    """Start libvirt's event loop once in this process: the embedded driver refuses to work without."""
    import libvirt

    global _loop_started
    with _loop_lock:
        if _loop_started:
            return
        libvirt.virEventRegisterDefaultImpl()
        libvirt.registerErrorHandler(lambda _context, _error: None, None)

        def run() -> None:
            while True:
                libvirt.virEventRunDefaultImpl()

        threading.Thread(target=run, name="libvirt-events", daemon=True).start()
        _loop_started = True


def embedded_root(uri: str) -> Path:
    """The root of an embedded driver's URI, `qemu:///embed?root=DIR`.

    Raises `HarnessError` for any other URI. A daemon's machines would live outside the worker's
    sandbox: they could not reach its network, and would not end with it.
    """
    parts = urlsplit(uri)
    root = parse_qs(parts.query).get("root")
    if (parts.scheme, parts.path) != ("qemu", "/embed") or not root:
        raise HarnessError(
            f"{uri} is not an embedded driver: a daemon's machines cannot live in a worker's sandbox",
            hint="--libvirt-uri 'qemu:///embed?root=DIR' with --jobs 1, or leave it out",
        )
    return Path(root[0])


def connect(root: Path) -> Any:
    """A `libvirt.virConnect` to an embedded driver that keeps everything under `root`.

    Raises `HarnessError` when libvirt or its QEMU driver is missing or refuses.
    """
    try:
        import libvirt
    except ImportError as error:
        raise HarnessError(
            f"the Python binding of libvirt is missing: {error}", hint="tools/run --setup-only"
        ) from error
    etc = root / "etc"
    etc.mkdir(parents=True, exist_ok=True)
    (etc / "qemu.conf").write_text(_QEMU_CONF if os.geteuid() else _QEMU_CONF_OF_ROOT)
    uri = f"qemu:///embed?root={root}"
    _start_event_loop()
    try:
        connection = libvirt.open(uri)
        connection.getVersion()  # looks for the emulator
    except libvirt.libvirtError as error:
        raise HarnessError(
            f"libvirt does not work with {uri}: {error}", hint="tools/doctor says what is missing"
        ) from error
    return connection
