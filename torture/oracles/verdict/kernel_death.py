"""A kernel's words for its own death on its console."""

from __future__ import annotations

import re

KERNEL_DEATH = re.compile(r"Kernel panic|Oops: |BUG: (?!soft lockup|workqueue lockup)")
"""A lockup that a watchdog reports does not count (Linux kernel/watchdog.c, kernel/workqueue.c).
The guest of a host that stood still for 20 s reports it, too, and goes on."""
