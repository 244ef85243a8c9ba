"""Every file of a run, as types, and where each lies. Pure."""
