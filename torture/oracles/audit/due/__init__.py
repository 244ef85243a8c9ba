"""When each promise in the NAS's answers is due, and when the NAS's disks kept it."""
