"""The load that runs inside the client: writes self-describing blocks, and reads them back.

Runs under slow emulation with nothing but the standard library, and avoids its slow imports
(`dataclasses`, `typing`, `random`, `argparse`): each costs tenths of a second in such a guest.
"""
