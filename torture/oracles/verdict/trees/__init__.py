"""What became of trees of directories whose names, sizes, holes and attributes were changed."""
