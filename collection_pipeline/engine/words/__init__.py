"""Decisions and outcomes in words, the same everywhere: gate, sensor tick, command line, alerts, documents. Pure."""
