"""Everything in PostgreSQL: Dagster's runs, events and schedules, and the artifacts."""
