"""A client whose root is on the NAS's disk: how it gets there, and whether it boots again."""
