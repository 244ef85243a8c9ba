"""The stages of a trial share three things: the trial, its machines, and the writer of its evidence."""
