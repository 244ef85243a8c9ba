"""A measurement of speed in slow motion: the same machines as a trial's, without a cut."""
