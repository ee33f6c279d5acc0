"""A sensor tick, `collect status` and opening a run, beside 10, 1,000 and 100,000 runs that are settled.

The old runs are inserted by SQL as the template's graph leaves them: four jobs done, four artifacts and their inputs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import count, islice
from statistics import median
from typing import Any

import dagster as dg

from benchmarks.measuring import Figure, interleaved, seconds, workplace
from benchmarks.workload import NOW, ZONE
from collection_pipeline.cli.opening import of_run
from collection_pipeline.cli.state_table import look
from collection_pipeline.definitions import GRAPH
from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.planning.state import Artifact
from collection_pipeline.engine.run_ids import RunId
from collection_pipeline.engine.runs.launches import RUN_ID
from collection_pipeline.engine.runs.propagation import propagate
from collection_pipeline.engine.store.database import Database
from collection_pipeline.engine.store.references import inputs_to_json
from collection_pipeline.engine.store.runs import graph_hash
from collection_pipeline.engine.store.schema import artifact_inputs, artifacts, jobs, runs
from collection_pipeline.resources import collection
from collection_pipeline.settings import Settings

TABLES = (runs, jobs, artifacts, artifact_inputs)


def measure(*, quick: bool) -> Iterator[Figure]:
    """All sizes side by side, each in a store and a Dagster instance of its own; their ratio says how flat it is."""
    sizes = (10, 1_000, 10_000) if quick else (10, 1_000, 100_000)
    with ExitStack() as stack:
        worlds = {str(size): stack.enter_context(_world(size)) for size in sizes}
        for name, of in STEPS.items():
            for world in worlds.values():
                of(world)  # the first time statements are compiled and pages are read
            taken = interleaved(10 if quick else 40, **{size: partial(_timed, of, worlds[size]) for size in worlds})
            for size in worlds:
                at_most = 5 if of is World.tick else None
                yield Figure(f"{name}, {int(size):,} settled runs", median(taken[size]) * 1e3, "ms", at_most=at_most)
            growth = median(taken[str(sizes[-1])]) / median(taken[str(sizes[0])])
            yield Figure(f"{name}, {sizes[-1]:,} over {sizes[0]}", growth, "x", at_most=1.5)


@dataclass
class World:
    """A collection with many settled runs, and what is done in it."""

    made: Collection
    instance: dg.DagsterInstance
    further: Iterator[RunId] = field(default_factory=lambda: (RunId.parse(f"2026-11-29.{n}") for n in count(2)))

    def tick(self) -> None:
        """A sensor tick with nothing open."""
        assert len(list(propagate(self.instance, self.made))) == 1

    def status(self) -> None:
        """`collect status` without RUN_ID."""
        [newest] = self.made.store.newest_runs(1)
        look(of_run(self.made, newest), newest).text()

    def open(self) -> None:
        """Open a run."""
        run_id = next(self.further)
        self.instance.add_dynamic_partitions(RUN_ID, [run_id.text])
        self.made.store.open_run(run_id, ZONE, GRAPH, NOW)

    def look(self) -> None:
        """A sensor tick with one run open."""
        if not self.made.store.open_runs():
            self.open()
        list(propagate(self.instance, self.made))


STEPS: dict[str, Callable[[World], None]] = {
    "a sensor tick, nothing open": World.tick,
    "collect status": World.status,
    "a sensor tick, one run open": World.look,
    "opening a run": World.open,
}
"""In this order: opening ends the quiet."""


def _timed(step: Callable[[World], None], world: World) -> float:
    return seconds(lambda: step(world))


@contextmanager
def _world(size: int) -> Iterator[World]:
    with workplace() as environ, dg.DagsterInstance.ephemeral() as instance:
        made = collection(GRAPH, Settings.load(environ))
        _insert(made, size)
        instance.add_dynamic_partitions(RUN_ID, [str(run_id) for run_id in _run_ids(size)])
        with made.store:
            yield World(made, instance)


def _run_ids(size: int) -> Iterator[RunId]:
    """One an hour, back from the day before."""
    return islice((RunId.parse(f"{NOW - timedelta(hours=7 + back):%Y-%m-%dT%H%M}") for back in count()), size)


def _insert(made: Collection, size: int) -> None:
    made.store.open_run(RunId.parse("2000-01-01"), ZONE, GRAPH, NOW)
    database = Database(made.store.url)
    run_ids = _run_ids(size)
    for start in range(0, size, 5_000):
        rows: dict[str, list[dict[str, Any]]] = {table.name: [] for table in TABLES}
        for number, run_id in enumerate(islice(run_ids, 5_000), start):
            _add_run(rows, run_id, number)
        with database.write() as connection:
            for table in TABLES:
                connection.execute(table.insert(), rows[table.name])
    with database.write() as connection:
        connection.execute(runs.update().values(settled_at=NOW))
    database.close()


def _add_run(rows: dict[str, list[dict[str, Any]]], run_id: RunId, number: int) -> None:
    moment = run_id.moment(ZONE)
    made: dict[str, Artifact] = {}
    rows[runs.name].append(
        {"run_id": str(run_id), "moment": moment, "suffix": 1, "opened_at": moment, "graph_hash": graph_hash(GRAPH)}
    )
    for place, job in enumerate(GRAPH):
        artifact = Artifact(job.job_id, str(run_id), 1, moment, f"{number:064x}")
        inputs = {upstream: made[upstream] for upstream in job.upstreams}
        made[job.job_id] = artifact
        artifact_id = number * len(GRAPH.jobs) + place + 1
        rows[jobs.name].append(
            {
                "run_id": str(run_id),
                "job_id": job.job_id,
                "deps": list(job.upstreams),
                "status": "done",
                "outcome": "done",
                "started_at": moment,
                "finished_at": moment,
                "attempted": inputs_to_json(inputs),
                "attempt": 1,
                "dagster_run_id": f"run-{number}",
                "host": "host",
                "pid": 1,
                "process_started_at": 0.0,
                "generation": 1,
                "oldest_generation": 1,
                "credits_charged": 100,
            }
        )
        rows[artifacts.name].append(
            dataclasses.asdict(artifact)
            | {
                "artifact_id": artifact_id,
                "usable": True,
                "is_current": True,
                "row_count": 1_000,
                "dataset": job.job_id,
                "source": "benchmark",
                "published_at": moment,
                "attempt": 1,
                "dagster_run_id": f"run-{number}",
                "generation": 0,
                "oldest_generation": 0,
                "credits_charged": 100,
                "credits_reused": 0,
                "checks": [],
                "metadata": {},
                "files": [],
                "moment": moment,
                "suffix": 1,
            }
        )
        rows[artifact_inputs.name] += [
            {
                "artifact_id": artifact_id,
                "upstream": edge.upstream,
                "input_artifact_id": number * len(GRAPH.jobs) + list(GRAPH.jobs).index(edge.upstream) + 1,
                "policy": edge.policy,
                "on_rerun": edge.on_rerun,
            }
            for edge in job.edges
        ]
