"""What became of what applications were told: one oracle for all of them. Pure."""
