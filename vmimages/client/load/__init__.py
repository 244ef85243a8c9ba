"""The load that runs inside the client: writes self-describing blocks, and reads them back.

It runs under slow emulation with the standard library alone, and avoids its slow imports
(`dataclasses`, `typing`, `random`, `argparse`): each costs tenths of a second in this guest.
"""
