"""What a trial leaves behind: evidence, records, JSON Lines. The ground floor; runs nothing."""
