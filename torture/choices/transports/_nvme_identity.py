"""The Identify structures of an NVMe controller and its namespace, read in the client."""

from __future__ import annotations

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
