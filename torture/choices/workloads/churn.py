"""Thousands of small files whose times keep changing beside the ledger. Each second syncs all.

The ledger's own metadata are a few blocks, and each commit of a filesystem writes them again. So
the next commit mends the blocks that a NAS forgets of one. A disk in daily use has thousands of
metadata blocks, and a commit writes blocks that the next commits do not write.

A filesystem commits every 5 to 30 s by itself (`commit` in ext4(5) and btrfs(5)). A cut of a load
of seconds hardly met a commit. Here each second has a commit. After a commit that an outage
delayed, the next comes 30 s later: otherwise it would at once mend the lost blocks.

No file's times are promised. The files were durable before the load began: each has to be there.
"""

from __future__ import annotations

from torture.choices.workloads._files_beside import FilesBeside
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.axis import Choice

_NAME = "churn"
_COMMON = """
def path(number): return f"{home}/{number % 64}/{number}"
def content(number): return f"{number} " * 40
"""
_MAKE = """
for folder in range(64): os.makedirs(f"{home}/{folder}")
for number in range(count):
    with open(path(number), "w") as file: file.write(content(number))
os.sync()
"""
_CHANGE = """
due = time.monotonic() + 1
while not os.path.exists(stop):
    for _ in range(4): os.utime(path(draw.randrange(count)))
    time.sleep(0.1)
    begun = time.monotonic()
    if begun > due:
        os.sync()
        due = time.monotonic() + (1 if time.monotonic() < begun + 3 else 30)
"""
_READ = """
found = {"missing": [], "changed": [], "unreadable": []}
def ask_for(number):
    try:
        file = os.open(path(number), os.O_RDONLY | os.O_NONBLOCK)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_WILLNEED)
        return file
    except FileNotFoundError: found["missing"].append(number)
    except OSError: found["unreadable"].append(number)
def compare(number, file):
    try:
        if os.read(file, 65536) != content(number).encode(): found["changed"].append(number)
    except OSError: found["unreadable"].append(number)
    os.close(file)
for folder in range(64):
    files = [(number, ask_for(number)) for number in range(folder, count, 64)]
    for number, file in files:
        if file is not None: compare(number, file)
print(json.dumps({what: sorted(numbers) for what, numbers in found.items()}))
"""
"""The program asks for a folder's files at once: each by itself is a round trip to the NAS. It
opens them once and without Python's layers. Those layers took an emulated guest 9 s of a
processor, five times the present time."""


CHOICE: Choice[Workload] = Choice(
    name=_NAME,
    value=FilesBeside(
        name=_NAME, files=6000, common=_COMMON, make=_MAKE, change=_CHANGE, read=_READ
    ),
    words="the ledger, beside thousands of files that change, with a sync each second",
)
