"""NVMe over TCP: Linux's nvmet on a zvol; the client's own kernel is the host.

Set up through configfs and /dev/nvme-fabrics (Linux drivers/nvme/target/configfs.c,
drivers/nvme/host/fabrics.c): nvme-cli and nvmetcli write the same. FUA and flushes reach the zvol
(drivers/nvme/target/io-cmd-bdev.c).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from torture.choices.transports.protocol import (
    ADD_PATH,
    PATH_SCRIPTS,
    SECOND_HOST,
    Attachment,
    OfImage,
    OfZvol,
    Traits,
    Transport,
)
from torture.choices.volumes import IMAGE, VolumeKind, VolumeOptions, zvol
from torture.facts.axes.away import Patience
from torture.facts.axes.axis import Choice, choices_beside
from torture.facts.axes.early import Early
from torture.facts.wire.disk_requests import DiskWire
from torture.facts.wire.nvme_pdus import NvmeTcpOnWire

PORT = 4420
NQN = "nqn.2014-08.org.nvmexpress:torture:vm"
_HOST_NQN = "nqn.2014-08.org.nvmexpress:uuid:7c1b6d1e-0f4b-4f0e-8f1a-000000000001"
_HOST_ID = "7c1b6d1e-0f4b-4f0e-8f1a-000000000001"
_NAMESPACE_UUID = "7c1b6d1e-0f4b-4f0e-8f1a-0000000000ff"
"""Random by default; a client removes a disk whose identity changed (`nvme_validate_ns`)."""
_NVMET = "/sys/kernel/config/nvmet"
_SUBSYSTEM = f"{_NVMET}/subsystems/{NQN}"
_CONNECT = (
    f"transport=tcp,traddr={{host}},trsvcid={PORT},nqn={NQN},hostnqn={_HOST_NQN},hostid={_HOST_ID}"
)
_WAITS_FOREVER = ",ctrl_loss_tmo=-1,reconnect_delay=1,keep_alive_tmo=5"
_WAITS = "cd /sys/class/nvme; echo $(sort -u */ctrl_loss_tmo) $(sort -u */reconnect_delay)"
"""Shell: the seconds after which the client gives its disk up, and those between two tries. By default
60 tries follow each other by 10 s (Linux drivers/nvme/host/fabrics.h)."""
_BY_DEFAULT = "Y"
_MULTIPATH = "/sys/module/nvme_core/parameters/multipath"
_PORT = f"{_NVMET}/ports/1"
_OFFERED = f"{_PORT}/subsystems/{NQN}"
_OFFER = f"ln -s {_SUBSYSTEM} {_OFFERED}"
_ENABLE = f"echo 1 > {_SUBSYSTEM}/namespaces/1/enable"
_OTHER = f"{_NVMET}/subsystems/{NQN}-other"
_OPEN_PORT = f"""\
mkdir -p {_PORT}
echo tcp > {_PORT}/addr_trtype
echo ipv4 > {_PORT}/addr_adrfam
echo 0.0.0.0 > {_PORT}/addr_traddr
echo {PORT} > {_PORT}/addr_trsvcid
"""
_RETRACT = f"rm {_OFFERED}"
_TRAITS = Traits(
    ports=(PORT,),
    client_has_network=True,
    target_scripts=(_RETRACT, _OFFER),
    waits_s=((Patience.FOREVER, math.inf), (Patience.DEFAULTS, 600)),
    orders=frozenset({Early.OTHER_FIRST, Early.NAMESPACE_LATE}),
    release_script=f"set -eu; {_RETRACT}; echo 0 > {_SUBSYSTEM}/namespaces/1/enable",
)
"""Without its link the subsystem loses its controllers, and the port its socket (configfs.c)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NvmeTcp(OfZvol):
    """One namespace; `multipath` is `nvme_core`'s parameter, Y by default in Linux.

    It can only be set as the module is loaded, and Debian's cloud kernel has it built in. nvmet
    always reports a volatile cache. A client that connects again learns nothing of lost writes.
    `has_two_paths`: the NAS has a second address, and the client connects to both.
    """

    multipath: str = _BY_DEFAULT
    patience: Patience = Patience.FOREVER
    has_two_paths: bool = False
    traits: Traits = _TRAITS
    place: ClassVar[str] = zvol.DEVICE
    is_buffered: ClassVar[bool] = False
    """Whether nvmet opens it without O_DIRECT."""

    def waiting(self, patience: Patience) -> Transport:
        """The same with other timeouts."""
        return replace(self, patience=patience)

    def publish_script(self, options: VolumeOptions) -> str:
        """Namespace, port, and their link last: listening starts with it."""
        return f"{self._namespace_script}{_ENABLE}\n{_OPEN_PORT}{_OFFER}\n"

    def early_script(self, options: VolumeOptions) -> str:
        """The port, opened by another subsystem, or by this one without its namespace."""
        if options.order is Early.NAMESPACE_LATE:
            return f"{self._namespace_script}{_OPEN_PORT}{_OFFER}\n"
        other = f"mkdir -p {_OTHER}\necho 1 > {_OTHER}/attr_allow_any_host\n"
        return f"{self._modules}{other}{_OPEN_PORT}ln -s {_OTHER} {_PORT}/subsystems/\n"

    def late_script(self, options: VolumeOptions) -> str:
        """The namespace, or the subsystem with it."""
        if options.order is Early.NAMESPACE_LATE:
            return _ENABLE
        return f"{self._namespace_script}{_ENABLE}\n{_OFFER}\n"

    @property
    def _modules(self) -> str:
        second = ADD_PATH if self.has_two_paths else ""
        return f"set -eu\n{second}modprobe -a nvmet nvmet-tcp\n"

    @property
    def _namespace_script(self) -> str:
        return f"""{self._modules}mkdir -p {_SUBSYSTEM}/namespaces/1
echo 1 > {_SUBSYSTEM}/attr_allow_any_host
echo -n {self.place} > {_SUBSYSTEM}/namespaces/1/device_path
echo {int(self.is_buffered)} > {_SUBSYSTEM}/namespaces/1/buffered_io
echo {_NAMESPACE_UUID} > {_SUBSYSTEM}/namespaces/1/device_uuid
"""

    def attachment(self, *, nas_host: str) -> Attachment:
        """An NVMe disk, of a kernel whose multipath is set as wanted."""
        multipath = self.multipath
        hosts = (nas_host, SECOND_HOST) if self.has_two_paths else (nas_host,)
        is_forever = self.patience is Patience.FOREVER
        words = _WAITS_FOREVER if is_forever else ""
        connect = "\n".join(
            f"echo {_CONNECT.format(host=host)}{words} > /dev/nvme-fabrics" for host in hosts
        )
        return Attachment(
            attach_script=f"""set -eu
modprobe nvme-tcp
test "$(cat {_MULTIPATH})" = {multipath} || {{ echo 'multipath is not {multipath}' >&2; exit 1; }}
{connect}
""",
            kernel_words="" if multipath == _BY_DEFAULT else f"nvme_core.multipath={multipath}",
            detach_script="for c in /sys/class/nvme/nvme*; do echo 1 > $c/delete_controller; done",
            patience=(_WAITS, "off 1" if is_forever else "600 10"),
            wire=DiskWire(protocol=NvmeTcpOnWire(PORT)),
            advertised_script=IDENTITY_SCRIPT,
            device="/dev/nvme0n1",
        )


class NvmeTcpFile(OfImage, NvmeTcp):
    """A namespace on a file, as TrueNAS 25.10 has it.

    A flush is an fsync of the file, a forced write O_DSYNC (drivers/nvme/target/io-cmd-file.c).
    """

    place = IMAGE
    is_buffered = True


CHOICES: tuple[Choice[Transport], ...] = choices_beside(
    __file__,
    {
        "nvme_tcp": NvmeTcp(),
        "nvme_tcp_two": NvmeTcp(
            has_two_paths=True, traits=replace(_TRAITS, path_scripts=PATH_SCRIPTS)
        ),
        "nvme_tcp_single": NvmeTcp(
            multipath="N", traits=replace(_TRAITS, offers_atomic_writes=True)
        ),
        "nvme_tcp_file": NvmeTcpFile(traits=replace(_TRAITS, volume=VolumeKind.DATASET)),
    },
)


_PROGRAM = """\
import ctypes, fcntl, glob, struct

NVME_IOCTL_ADMIN_CMD, IDENTIFY, BYTES = 0xC0484E41, 0x06, 4096
OF_NAMESPACE, OF_CONTROLLER = 0, 1


def identify(device, namespace, cns):
    data = ctypes.create_string_buffer(BYTES)
    command = struct.pack(
        "=BBHIIIQQIIIIIIIIII",
        IDENTIFY, 0, 0, namespace, 0, 0, 0, ctypes.addressof(data), 0, BYTES, cns, 0, 0, 0, 0, 0, 0, 0,
    )
    fcntl.ioctl(device, NVME_IOCTL_ADMIN_CMD, bytearray(command))
    return data.raw


def word(data, at):
    return int.from_bytes(data[at : at + 2], "little")


with open(sorted(glob.glob("/dev/nvme[0-9]"))[0], "rb") as device:
    controller, namespace = identify(device, 0, OF_CONTROLLER), identify(device, 1, OF_NAMESPACE)
block_bytes = 1 << namespace[128 + 4 * (namespace[26] & 15) + 2]
blocks = word(namespace, 36) if namespace[24] & 2 else word(controller, 528)
print(
    f"nvme_vwc={controller[525] & 1} nvme_mdts={controller[77]} "
    f"nvme_awupf={word(controller, 528)} nvme_nawupf_bytes={(blocks + 1) * block_bytes}"
)
"""
IDENTITY_SCRIPT = f"""\
python3 -S - << 'END'
{_PROGRAM}END"""
"""Shell: print these fields on a line.

VWC is the volatile write cache. MDTS is the largest transfer, 0 without a limit. AWUPF is the atomic
write unit at a power failure in blocks, from zero. NAWUPF is the namespace's own, here in bytes.

Linux include/uapi/linux/nvme_ioctl.h, `nvme_passthru_cmd`; include/linux/nvme.h, `nvme_id_ctrl` and
`nvme_id_ns`.
"""
