"""The crash states of a recording: the sets of writes that survive, drawn, and their layers."""
