"""The engine: propagation, artifacts by run, reruns. Nothing in here knows what is collected.

`planning` decides, `words` says it, `store` keeps everything, `runs` carries whole runs on, `jobs` runs one job inside
one Dagster step. Each imports only what stands before it.
"""
