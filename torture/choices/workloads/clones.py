"""Clones of files whose originals are deleted one by one beside the ledger, while new files take space.

`cp --reflink` and a server's own copy (RFC 7862, 15.2 and 15.13) make such clones: both files have the
same blocks. A filesystem has to count the files of a block, and may free it with the last one alone.
Originals may be gone or there. The clones were durable before the load: each has to be as it was.

Where a filesystem clones nothing, the files are copied, as `cp --reflink=auto` does.
"""

from __future__ import annotations

from torture.choices.workloads._files_beside import READ_EACH, FilesBeside
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.axis import Choice

_NAME = "clones"
_COMMON = """
import fcntl
BYTES, NEW, FICLONE = 128 << 10, 256, 0x40049409
def path(number): return f"{home}/{number}"
def original(number): return f"{home}-originals/{number}"
def content(number): return (f"{number} " * BYTES)[:BYTES].encode()
"""
_MAKE = """
os.makedirs(home)
os.makedirs(f"{home}-originals")
for number in range(count):
    with open(original(number), "wb") as file: file.write(content(number))
os.sync()
for number in range(count):
    with open(original(number), "rb") as one, open(path(number), "wb") as other:
        try: fcntl.ioctl(other, FICLONE, one.fileno())
        except OSError: other.write(one.read())
os.sync()
"""
_CHANGE = """
os.makedirs(f"{home}-new", exist_ok=True)
left, turn = list(range(count)), 0
draw.shuffle(left)
while not os.path.exists(stop):
    if left: os.unlink(original(left.pop()))
    with open(f"{home}-new/{turn % NEW}", "wb") as file: file.write(draw.randbytes(BYTES))
    turn += 1
    if turn % 4 == 0: os.sync()
    time.sleep(0.2)
"""
_READ = """
def is_as_it_was(number, now): return now == content(number)
"""

CHOICE: Choice[Workload] = Choice(
    name=_NAME,
    value=FilesBeside(
        name=_NAME, files=128, common=_COMMON, make=_MAKE, change=_CHANGE, read=_READ + READ_EACH
    ),
    words="the ledger, beside clones of files that are deleted",
)
