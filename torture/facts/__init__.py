"""Facts: numbers, versions, axes, a trial's evidence, the recordings of disks and wires. Pure.

Each room holds one kind of fact and judges none of it. A fact may import other facts, and the single
modules of `torture/`; `stats` imports nothing at all.
"""
