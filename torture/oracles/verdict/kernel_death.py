"""A kernel's words for the death of one of its threads, or of itself.

The words are those of Linux 6.1 to 6.12. `__die_header` (`arch/x86/kernel/dumpstack.c`) ends each
fault with its error code and a number, `: 0000 [#1]`. Before 6.11 many lack `Oops: `. The others are of
`show_fault_oops` (`arch/x86/mm/fault.c`), `lib/bug.c`, `kernel/panic.c` and `arch/arm64/mm/fault.c`.
"""

from __future__ import annotations

import re

KERNEL_DEATH = re.compile(
    r"Kernel panic|kernel BUG at \S+:\d+!|"
    r"BUG: (?:kernel NULL pointer|unable to handle|\S+ stack guard page)|"
    r"Unable to handle kernel |Oops: |[A-Za-z][^\[\]\n]*: [0-9a-f]{4,16} \[#\d+\]"
)
"""It has no lockup that a watchdog reports (`kernel/watchdog.c`, `kernel/workqueue.c`). The guest of a
host that stood still for 20 s reports it, too, and goes on. Nor has it a `BUG: ` after which the
thread goes on, e.g. `scheduling while atomic` (`kernel/sched/core.c`)."""
