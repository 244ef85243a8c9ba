"""The promises of disks and transports: proved before use, traced in use, compared with a recording."""
