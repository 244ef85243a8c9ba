"""A recorded trial again: judged anew from its disks, or its disks served to whoever looks."""
