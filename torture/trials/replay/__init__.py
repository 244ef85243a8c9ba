"""A recorded trial again: recovered and scored from its disks, or its disks served to a user."""
