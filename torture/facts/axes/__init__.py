"""The type of an axis, and the axes with few and fixed choices: one file per axis. Pure."""
