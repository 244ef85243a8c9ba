"""Features that one can take out: each is a folder, and the core finds its parts by their names."""
