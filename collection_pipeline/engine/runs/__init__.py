"""Whole runs: where they stand, what Dagster has in flight for them, what is requested next, and who hears of it."""
