"""What a seed decides. Pure."""
