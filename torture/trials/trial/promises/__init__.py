"""The promises of disks and transports: proof before use, trace in use, comparison afterwards."""
