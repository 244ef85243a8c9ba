"""The speed of a cell, measured in slow motion, beside its losses and beside published figures."""
