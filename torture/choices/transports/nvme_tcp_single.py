"""NVMe over TCP without native multipath (`nvme_core.multipath=N`).

With multipath a flush in flight when the link dies ends with success. It has no bio, so
`nvme_failover_req` (Linux drivers/nvme/host/multipath.c, 6.12) has nothing to send again. Without
multipath the flush waits for the NAS (`nvme_retry_req`, drivers/nvme/host/core.c).
"""

from __future__ import annotations

from torture.choices.transports.nvme_tcp import NvmeTcp
from torture.choices.transports.protocol import Transport
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep

CHOICE: Choice[Transport] = Choice(
    name="nvme_tcp_single",
    value=NvmeTcp(multipath="N"),
    words="NVMe/TCP (one path)",
    explained="the same with `nvme_core.multipath=N`",
    joins=frozenset({Sweep.EVERY_TRANSPORT}),
    place=31,
)
