"""Counts the published runs from their files alone, with nothing of the suite but this file.

    python suites/selftest/unit/report/count_published.py [FOLDER]

It is the slow and obvious way: no schema, no database, no judge. `test_published.py` holds the
report against it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def counts_of(folder: Path) -> dict[str, int]:
    """The trials, cuts and walked states of all runs in the folder, each trial once and no void one."""
    cuts: dict[tuple[str, ...], list[Json]] = {}
    walks: dict[str, Json] = {}
    runs = sorted(
        folder.glob("*/run.json"), key=lambda file: str(json.loads(file.read_text())["begun"])
    )
    void: set[str] = set()
    for file in runs:
        void |= {name for name, why in json.loads(file.read_text()).get("void", {}).items() if why}
    for file in runs:
        for line in (file.parent / "trials.jsonl").read_text().splitlines():
            record = json.loads(line)
            if record["trial"] in void or record.get("fault"):
                continue
            if record.get("origin", "live") == "live":
                cuts.setdefault((record["trial"], *_versions(record, file.parent)), []).append(
                    record
                )
            elif record["origin"] == "walked" and record.get("walk"):
                walks.setdefault(record["trial"], record)
    ended = [_the_one(tries) for tries in cuts.values()]
    conclusive = [record for record in ended if _verdict(record) != "inconclusive"]
    drawn = [one for one in conclusive if one["cut"].get("confirmed", {}).get("marks") is None]
    done = [record["walk"] for record in walks.values() if _verdict(record) != "inconclusive"]
    good = ("intact", "inconclusive")
    lost = [sum(n for end, n in walk["outcomes"].items() if end not in good) for walk in done]
    return {
        "cuts": len(ended),
        "conclusive cuts": len(conclusive),
        "harmed cuts": sum(map(_is_harmed, drawn)),
        "recordings": len(done),
        "states": sum(_states(walk) for walk in done),
        "proven states": sum(walk.get("proven", 0) for walk in done),
        "states amid recovery": sum(walk.get("amid_recovery", 0) for walk in done),
        "losing states": sum(lost),
        "losing recordings": sum(map(bool, lost)),
        "void": len(void),
    }


def _versions(record: Json, run: Path) -> tuple[str, ...]:
    of_run = json.loads((run / "run.json").read_text())
    kernels = [
        record.get("where", {}).get(f"linux_{name}")
        or (of_run["images"].get(name) or {"packages": {}})["packages"].get("kernel", "")
        for name in ("nas", "client")
    ]
    return record.get("zfs") or of_run.get("zfs", ""), *kernels


def _the_one(tries: list[Json]) -> Json:
    """The worst of them: true of these runs, where the one trial made twice is of a safe cell."""
    order = ("inconclusive", "intact", "repaired", "rolled-back")
    return max(tries, key=lambda one: order.index(end) if (end := _verdict(one)) in order else 9)


def _verdict(record: Json) -> str:
    return str(record["judgement"]["verdict"])


def _is_harmed(record: Json) -> bool:
    return bool(record["judgement"]["findings"].get("lost", 0)) or _verdict(record) not in (
        "intact",
        "offline",
        "repaired",
    )


def _states(walk: Json) -> int:
    return int(walk.get("recovered", 0) + walk.get("proven", 0))


if __name__ == "__main__":
    here = Path(__file__).resolve().parents[4] / "results" / "published"
    for name, count in counts_of(Path(sys.argv[1]) if sys.argv[1:] else here).items():
        print(f"{count:7,} {name}")
