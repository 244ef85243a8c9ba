"""The fate of directory trees whose names, sizes, holes and attributes were changed."""
