"""What the client does with its disk: filesystems and load."""
