"""From a record of any schema to the newest shape of a record.

Schema 1 called the guarantee `promise`. Until schema 2 a record had the judgement's fields beside
its own. Those of the data were in `found`, and each part's verdict was in `verdicts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torture.choices.matrix.cells import with_axes_since

_OF_JUDGEMENT = {"verdict": "verdict", "fsck": "fsck", "pool": "pool_summary", "reasons": "reasons"}
_OF_FINDINGS = ("acknowledged", "lost", "rollback_ms", "figures")
_OF_WRITERS = ("writers", "writers_failed")


def upgraded(data: Mapping[str, Any]) -> dict[str, Any]:
    """The record in the newest shape. Fields of a wrong type stay as they are."""
    newest = dict(data)
    if newest.get("schema") is None:
        newest["schema"] = 0
    if "promise" in newest:
        newest.setdefault("guarantee", newest.pop("promise"))
    if "judgement" not in newest:
        newest = _nested(newest)
    axes = newest.get("axes") or {}
    if isinstance(newest.get("cell"), str) and isinstance(axes, dict):
        texts = {axis: choice for axis, choice in axes.items() if isinstance(choice, str)}
        wrong = {axis: choice for axis, choice in axes.items() if axis not in texts}
        newest["cell"], now = with_axes_since(newest["cell"], texts)
        newest["axes"] = now | wrong
    return newest


def _nested(flat: dict[str, Any]) -> dict[str, Any]:
    judgement = {now: flat.pop(was) for was, now in _OF_JUDGEMENT.items() if was in flat}
    findings = {name: flat.pop(name) for name in _OF_FINDINGS if name in flat}
    verdicts, found = flat.pop("verdicts", None), flat.pop("found", None)
    if isinstance(verdicts, dict):
        judgement |= {part: verdicts[part] for part in ("pool", "filesystem") if part in verdicts}
        findings |= {"verdict": verdicts["data"]} if "data" in verdicts else {}
    elif verdicts is not None:
        judgement["pool"] = verdicts
    if isinstance(found, dict):
        flat |= {name: found[name] for name in _OF_WRITERS if name in found}
        findings |= {name: count for name, count in found.items() if name not in _OF_WRITERS}
    elif found is not None:
        findings["missing"] = found
    administration = flat.get("administration")
    if isinstance(administration, dict) and "outcome" in administration:
        judgement["administration"] = administration["outcome"]
    return flat | {"judgement": judgement | {"findings": findings}}
