"""Speed and memory of the pipeline, each figure beside a named peer measured in the same run. Never a test.

`python -m benchmarks` (or `make bench`) runs every subject in a process of its own; see README.md.
"""
