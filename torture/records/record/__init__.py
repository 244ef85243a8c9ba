"""Every file of a run, as a type, and the place of each. Pure."""
