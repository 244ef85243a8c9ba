"""Whether pool, filesystem and data of a trial are as they must be. Pure."""
