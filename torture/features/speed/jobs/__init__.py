"""Facts of measured speed: jobs, links, slow motion, and ratios with their intervals (pure)."""
