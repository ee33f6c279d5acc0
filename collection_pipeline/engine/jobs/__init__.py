"""One job inside one Dagster step: the asset decorator, the gate, paid calls, checks, publish."""
