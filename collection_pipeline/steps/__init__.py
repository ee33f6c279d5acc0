"""yours: pure functions from answers to data frames and a report. No Dagster, no network, no clock, no environment."""
