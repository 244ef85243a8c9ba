"""How a kernel says on its console that it is dead."""

from __future__ import annotations

import re

KERNEL_DEATH = re.compile(r"Kernel panic|Oops: |BUG: (?!soft lockup|workqueue lockup)")
"""Not a lockup that a watchdog reports (Linux kernel/watchdog.c, kernel/workqueue.c): the guest of a host
that stood still for 20 s says so, too, and goes on."""
