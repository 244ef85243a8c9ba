"""A client whose root is on the NAS's disk: the copy to the disk, and each later boot."""
