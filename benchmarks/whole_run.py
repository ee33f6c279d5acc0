"""A whole run of the template's own graph on one small query: `collect run` beside `dg.materialize`.

Both keep their history in a Dagster home of their own and their artifacts in a store of their own, and both ask the
embedded emulator. What `collect run` adds is deciding, the state table, progress and words.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from statistics import median

from benchmarks.measuring import Cost, Figure, interleaved, process_cost, python, ratio, seconds, workplace

QUERIES = '[[query]]\nq = "airport in malta"\npages = 1\n'

_MATERIALIZE = """
import os, sys
import dagster as dg
from collection_pipeline.assets import ASSETS
from collection_pipeline.definitions import defs

with dg.DagsterInstance.from_config(os.environ["DAGSTER_HOME"]) as instance:
    instance.add_dynamic_partitions("run_id", [sys.argv[1]])
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    done = dg.materialize(
        ASSETS, instance=instance, partition_key=sys.argv[1], resources=defs.resources, run_config=quiet
    )
sys.exit(not done.success)
"""


def measure(*, quick: bool) -> Iterator[Figure]:
    """Whole processes first, then what happens within one once everything is loaded."""
    rounds = 2 if quick else 5
    taken = interleaved(
        rounds,
        collect=lambda: _process("-m", "benchmarks.collect", "run", "2026-11-29"),
        materialize=lambda: _process("-c", _MATERIALIZE, "2026-11-29"),
    )
    wall = {name: [cost.wall_s for cost in costs] for name, costs in taken.items()}
    cpu = {name: [cost.cpu_s for cost in costs] for name, costs in taken.items()}
    value, note = ratio(wall["collect"], wall["materialize"])
    yield Figure("`collect run`, of `dg.materialize`, whole processes", value, "x", at_most=1.25, note=note)
    value, note = ratio(cpu["collect"], cpu["materialize"])
    yield Figure("the same in processor time", value, "x", note=note)
    for name in taken:
        yield Figure(f"the whole process, {name}", median(wall[name]), "s", note=f"{median(cpu[name]):.2f} s cpu")
    inside = _within(rounds + 1)
    value, note = ratio(inside["collect"], inside["materialize"])
    yield Figure("`collect run`, of `dg.materialize`, within a process", value, "x", at_most=1.25, note=note)
    for name, each in inside.items():
        yield Figure(f"within a process, {name}", min(each), "s")


def _process(*arguments: str) -> Cost:
    with workplace() as environ:
        return process_cost(python(*arguments), _prepared(environ))


def _prepared(environ: dict[str, str]) -> dict[str, str]:
    """A query file, and a Dagster home that reports nothing to anybody."""
    home = Path(environ["DAGSTER_HOME"])
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\nnux:\n  enabled: false\n")
    (home / "queries.toml").write_text(QUERIES)
    return environ | {"COLLECTION_QUERIES": str(home / "queries.toml")}


def _within(rounds: int) -> dict[str, list[float]]:
    with workplace() as environ:
        os.environ.update(_prepared(environ))
        import dagster as dg

        from collection_pipeline.assets import ASSETS
        from collection_pipeline.cli import opening
        from collection_pipeline.cli.session import session
        from collection_pipeline.definitions import GRAPH
        from collection_pipeline.engine.jobs.asset import COLLECTION_RESOURCE
        from collection_pipeline.engine.run_ids import RunId
        from collection_pipeline.engine.runs.launches import RUN_ID
        from collection_pipeline.resources import collection
        from collection_pipeline.settings import settings

        store = opening.open_store(settings())
        numbers = count(2)
        quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}

        def collect() -> None:
            run_id = RunId.parse(f"2026-11-29.{next(numbers)}")
            with session(settings(), store, run_id, f"collect run {run_id}") as work:
                assert work.settle("benchmark") is None

        def materialize() -> None:
            run_id = f"2026-11-29.{next(numbers)}"
            made = dataclasses.replace(collection(GRAPH, settings()), open_store=lambda: store)
            with dg.DagsterInstance.from_config(environ["DAGSTER_HOME"]) as instance:
                instance.add_dynamic_partitions(RUN_ID, [run_id])
                dg.materialize(
                    ASSETS,
                    instance=instance,
                    partition_key=run_id,
                    resources={COLLECTION_RESOURCE: made},
                    run_config=quiet,
                )

        taken = interleaved(rounds, collect=lambda: seconds(collect), materialize=lambda: seconds(materialize))
        store.close()
        return {name: each[1:] for name, each in taken.items()}  # the first loads what the others find loaded
