"""What a command loads: the definitions beside Dagster itself, and which commands get by without Dagster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.measuring import Cost, Figure, interleaved, process_cost, python, ratio, workplace

_ENDS_WITHOUT_DAGSTER = """
import sys
from collection_pipeline.cli import collect
try:
    collect(sys.argv[1:], prog_name="collect")
except SystemExit as end:
    assert not end.code, end.code
assert "collection_pipeline.cli" in sys.modules
heavy = [name for name in ("dagster", "pandas", "pyarrow") if name in sys.modules]
print("loaded:", *heavy, file=sys.stderr)
assert "dagster" not in heavy
"""


def measure(*, quick: bool) -> Iterator[Figure]:
    """Processes of their own, one after the other."""
    rounds = 3 if quick else 9
    with workplace() as environ:
        process_cost(python("-m", "compileall", "-q", "collection_pipeline"), environ, Path.cwd())

        def loading(module: str) -> Cost:
            return process_cost(python("-c", f"import {module}"), environ)

        taken = interleaved(
            rounds,
            dagster=lambda: loading("dagster"),
            definitions=lambda: loading("collection_pipeline.definitions"),
            nothing=lambda: loading("sys"),
            help=lambda: process_cost(python("-c", _ENDS_WITHOUT_DAGSTER, "--help"), environ),
            status=lambda: process_cost(python("-c", _ENDS_WITHOUT_DAGSTER, "status"), environ),
        )
    wall = {name: [cost.wall_s for cost in costs] for name, costs in taken.items()}
    cpu = {name: [cost.cpu_s for cost in costs] for name, costs in taken.items()}
    value, note = ratio(cpu["definitions"], cpu["dagster"])
    yield Figure("definitions, of `import dagster`, processor time", value, "x", at_most=1.3, note=note)
    value, note = ratio(wall["definitions"], wall["dagster"])
    yield Figure("definitions, of `import dagster`, wall", value, "x", at_most=1.3, note=note)
    for name in ("nothing", "dagster", "definitions", "help", "status"):
        words = {"nothing": "an interpreter that does nothing", "help": "collect --help", "status": "collect status"}
        note = "loads no Dagster" if name in ("help", "status") else ""
        yield Figure(words.get(name, f"import {name}"), median(cpu[name]), "s cpu", note=note)
