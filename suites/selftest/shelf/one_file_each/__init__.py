"""One new file of each kind: what adding to the suite takes."""
