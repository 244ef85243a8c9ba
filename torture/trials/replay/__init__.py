"""A recorded trial again: recovered and judged from its disks, or its disks served to a user."""
