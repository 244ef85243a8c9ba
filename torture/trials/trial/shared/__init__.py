"""What all stages of a trial share: the trial, its machines, and the writer of its evidence."""
