"""Decisions: the graph and its edges, the state of a run, the planner over both. Pure: no clock, no I/O, no Dagster."""
