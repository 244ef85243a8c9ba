"""What the NAS does: its pool, its log devices and its exports."""
