"""What runs in the client of a trial: its loads as one, and what the user brought for them."""
