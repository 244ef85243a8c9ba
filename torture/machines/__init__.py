"""Everything that runs: this host, guest images, virtual machines, the disk shelf, the client's side.

A machine may import facts, oracles, choices and records. It knows no trial and no report. `host` and
`images` need the standard library only, since `setup` imports them. `nas` runs nothing: it has the
pool's disks and commands.
"""
