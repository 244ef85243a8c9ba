"""Records of less than a page, written in place with O_DSYNC into files outside the page cache.

A key-value store or a log with short records writes so. The client has the rest of such a page neither
read nor cached: it has to read it first, or to send the record alone. `fs/netfs` of Linux 6.12.92 and
later sent the rest of its memory's page (docs/findings.md). The ledger's blocks are mostly whole pages.

A byte of a record may be old or new. All others are from before the load: they have to be as they were.
"""

from __future__ import annotations

from torture.choices.workloads._files_beside import READ_EACH, FilesBeside
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.axis import Choice

_NAME = "records"
_COMMON = """
PAGE, PAGES, FIRST, BEHIND = 4096, 16, 1536, 3072
BYTES = PAGES * PAGE
def path(number): return f"{home}/{number}"
def page(word, number, place): return (f"{word} {number} {place} ".encode() * PAGE)[:PAGE]
def old(number): return b"".join(page("old", number, place) for place in range(PAGES))
def record(number, place): return page("new", number, place)[FIRST:BEHIND]
"""
_MAKE = """
os.makedirs(home)
for number in range(count):
    with open(path(number), "wb") as file: file.write(old(number))
os.sync()
"""
_CHANGE = """
due = time.monotonic() + 1
while not os.path.exists(stop):
    number, place = draw.randrange(count), draw.randrange(PAGES)
    file = os.open(path(number), os.O_WRONLY | os.O_DSYNC)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.pwrite(file, record(number, place), place * PAGE + FIRST)
    os.close(file)
    time.sleep(0.05)
    if time.monotonic() > due:
        os.sync()
        due = time.monotonic() + 1
"""
_READ = """
def is_as_it_was(number, now):
    was = old(number)
    for place in range(PAGES):
        begin, end = place * PAGE + FIRST, place * PAGE + BEHIND
        before, written, after = was[begin:end], now[begin:end], record(number, place)
        is_whole = written in (before, after)
        if not is_whole and any(b not in pair for b, *pair in zip(written, before, after)): return False
        now = now[:begin] + before + now[end:]
    return now == was
"""

CHOICE: Choice[Workload] = Choice(
    name=_NAME,
    value=FilesBeside(
        name=_NAME, files=64, common=_COMMON, make=_MAKE, change=_CHANGE, read=_READ + READ_EACH
    ),
    words="the ledger, beside records of 1.5 KiB that are written in place with O_DSYNC",
)
