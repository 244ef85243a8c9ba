"""The promises in the NAS's answers: when each is due, and when the NAS's disks kept it."""
