"""The speed of modelled hardware, in real time and in slow motion."""
