"""The version of OpenZFS or Linux from which on a cell loses, by trials of some of them."""

BRINGS = ("tools/bisect",)
"""Its files beside the folders of its name."""
