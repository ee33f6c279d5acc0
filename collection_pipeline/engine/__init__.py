"""The engine: propagation, artifacts by run, reruns. Nothing in here knows what is collected."""
