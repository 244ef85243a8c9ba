"""Setting this host up, and reporting its abilities and lacks. Standard library only.

The set-up runs before there is a virtual environment. It may import the rooms `facts.linux`, `facts.zfs`,
`machines.host` and `machines.images`, which need only the standard library, too.
"""
