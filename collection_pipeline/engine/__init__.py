"""The engine: propagation, artifacts by run, reruns. Nothing in here knows what is collected.

`planning` decides, `words` says it, `store` keeps everything, `jobs` runs one job inside one Dagster step, `runs` carries
whole runs on. Each imports only what stands before it, `jobs` also `runs`.
"""
