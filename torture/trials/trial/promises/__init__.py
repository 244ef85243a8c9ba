"""What disks and transports promise: proven before use, told while they work, laid beside a recording."""
