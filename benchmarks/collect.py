"""The console script `collect`, by the interpreter that runs the benchmarks."""

from __future__ import annotations

from collection_pipeline.cli import main

if __name__ == "__main__":
    main()
