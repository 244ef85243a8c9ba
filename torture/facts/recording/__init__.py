"""The requests to the NAS's disks as recorded, and the crash states that a cut can leave. Pure."""
