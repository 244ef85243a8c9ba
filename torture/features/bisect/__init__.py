"""The version of OpenZFS or Linux from which on a cell loses, by trials of some of them."""
