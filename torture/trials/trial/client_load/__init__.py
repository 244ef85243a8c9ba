"""The programs in the client of a trial: its loads as one, and the user's files."""
