"""Where this checkout is: everything that is found by its place in it starts here."""

from __future__ import annotations

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
