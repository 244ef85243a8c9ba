"""One cut, from a cell and a seed to a record, as a short list of stages."""
