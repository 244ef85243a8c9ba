#!/usr/bin/env python3
"""A program with gobonniego's options, habits and report, for tests and measurements without it.

Its threads write files in chunks of 64 KiB, read them back, and then read 512 bytes at a random place
again and again. Every tenth time they write there. Nothing is synced (github.com/cunnie/gobonniego,
README.md, "Technical Notes"). It runs in the client, so it needs Python alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_CHUNK_BYTES = 64 << 10
_PIECE_BYTES = 512
_WRITE_EVERY = 10
_BYTES_PER_MB = 10**6


def write(path: Path, size_bytes: int) -> int:
    """Write a file in chunks; returns its bytes."""
    chunk = os.urandom(_CHUNK_BYTES)
    chunks = size_bytes // _CHUNK_BYTES
    with path.open("wb", buffering=0) as file:
        for _ in range(chunks):
            file.write(chunk)
    return chunks * _CHUNK_BYTES


def read(path: Path) -> int:
    """Read a file in chunks; returns its bytes."""
    read_bytes = 0
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK_BYTES):
            read_bytes += len(chunk)
    return read_bytes


def seek(path: Path, duration_s: float) -> int:
    """Read and write at random places for so long; returns the operations."""
    operations, places = 0, path.stat().st_size - _PIECE_BYTES
    end_s = time.monotonic() + duration_s
    with path.open("r+b", buffering=0) as file:
        while time.monotonic() < end_s:
            file.seek(random.randrange(places))
            if operations % _WRITE_EVERY == 0:
                file.write(bytes(_PIECE_BYTES))
            else:
                file.read(_PIECE_BYTES)
            operations += 1
    return operations


def timed(paths: Sequence[Path], work: Callable[[Path], int]) -> tuple[int, float]:
    """The sum of the threads' work, one for each file, and its seconds."""
    begin_s = time.monotonic()
    with ThreadPoolExecutor(len(paths)) as threads:
        done = sum(threads.map(work, paths))
    return done, time.monotonic() - begin_s


def run(folder: Path, *, threads: int, size_bytes: int, duration_s: float) -> dict[str, float]:
    """One run, as the report has it."""
    paths = [folder / f"bonnie.{number}" for number in range(threads)]
    written, write_s = timed(paths, lambda path: write(path, size_bytes // threads))
    read_back, read_s = timed(paths, read)
    operations, seek_s = timed(paths, lambda path: seek(path, duration_s))
    return {
        "write_megabytes_per_second": written / _BYTES_PER_MB / write_s,
        "read_megabytes_per_second": read_back / _BYTES_PER_MB / read_s,
        "iops": operations / seek_s,
    }


def main() -> int:
    """Run as the options say; a folder that cannot be made or filled is a panic, with exit code 2."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("-json", action="store_true", required=True)
    parser.add_argument("-dir", type=Path, required=True)
    parser.add_argument("-size", type=float, required=True, help="GiB")
    parser.add_argument("-threads", type=int, required=True)
    parser.add_argument("-runs", type=int, default=1)
    parser.add_argument("-iops-duration", type=float, required=True, help="seconds")
    options = parser.parse_args()
    folder = options.dir / "gobonniego"
    try:
        folder.mkdir()
        results = [
            run(
                folder,
                threads=options.threads,
                size_bytes=round(options.size * 2**30),
                duration_s=options.iops_duration,
            )
            for _ in range(options.runs)
        ]
    except OSError as error:
        print(f"panic: {error}", file=sys.stderr)
        return 2
    shutil.rmtree(folder)
    print(json.dumps({"version": "stand-in", "results": results}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
