"""What the NAS's disks were asked, and what a cut leaves of it. Pure."""
