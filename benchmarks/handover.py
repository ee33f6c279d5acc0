"""From one job to the next in the executor the template ships, beside stock Dagster.

Four jobs in a chain with bodies that do next to nothing, on an instance that keeps its history in SQLite files. Three
graphs: the collection's, four stock assets, and four stock assets that report as many checks.

Two stretches: the *hand-over*, from the end of one step to the start of the next, as Dagster's own events have it; and
from the end of one body to the start of the next, which on top of it has the publishing of the artifact and the
reporting of its checks on this side, and the gate and the claim on the other.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import dagster as dg
import pandas as pd

from benchmarks.measuring import Figure, interleaved, ratio, workplace
from collection_pipeline.definitions import GRAPH
from collection_pipeline.engine.checks import Volume
from collection_pipeline.engine.datasets import Column, Dataset
from collection_pipeline.engine.jobs.asset import COLLECTION_RESOURCE, RUNS, collection_asset, graph_of
from collection_pipeline.engine.jobs.job import Input, JobContext, Losses, Part
from collection_pipeline.engine.planning.edges import Edge
from collection_pipeline.engine.runs.launches import RUN_ID
from collection_pipeline.resources import collection
from collection_pipeline.settings import Settings

NAMES = ("first", "second", "third", "fourth")
CHECKS = ("schema", "unique_key", "volume", "degraded_inputs", "omitted_inputs")

stamps: list[float] = []
"""When bodies began and ended, in turn."""


class Pauses(NamedTuple):
    """Seconds from step to step and from body to body, as means over a run, and of the whole run."""

    steps: float
    bodies: float
    whole: float


def measure(*, quick: bool) -> Iterator[Figure]:
    """The three graphs in turn, each time a run of its own."""
    with workplace() as environ:
        home = Path(environ["DAGSTER_HOME"])
        home.mkdir()
        (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
        ours = _collection_assets()
        made = dataclasses.replace(collection(GRAPH, Settings.load(environ)), graph=graph_of(ours), datasets=_DATASETS)
        with dg.DagsterInstance.from_config(str(home)) as instance:
            run_ids = (f"2026-11-29.{number}" for number in count(2))

            def run(assets: list[dg.AssetsDefinition], **resources: object) -> Pauses:
                return _run(instance, assets, next(run_ids), resources)

            graphs = {
                "ours": partial(run, ours, **{COLLECTION_RESOURCE: made}),
                "stock": partial(run, _stock_assets(())),
                "checked": partial(run, _stock_assets(CHECKS)),
            }
            interleaved(1, **graphs)  # the first time everything is loaded and compiled
            taken = interleaved(3 if quick else 10, **graphs)
    for stretch, words, at_most in (
        ("steps", "hand-over, step to step", 1.2),
        ("bodies", "body to body", None),
        ("whole", "the whole Dagster run", None),
    ):
        found = {name: [getattr(pauses, stretch) for pauses in runs] for name, runs in taken.items()}
        for peer, peer_words in {
            "stock": "four stock assets",
            "checked": "four stock assets with as many checks",
        }.items():
            value, note = ratio(found["ours"], found[peer])
            yield Figure(f"{words}, of {peer_words}", value, "x", at_most=at_most, note=note)
        for name, graph_words in {"ours": "ours", "stock": "stock", "checked": "stock with checks"}.items():
            yield Figure(f"{words}, {graph_words}", min(found[name]) * 1e3, "ms")


def _run(
    instance: dg.DagsterInstance, assets: list[dg.AssetsDefinition], run_id: str, resources: dict[str, object]
) -> Pauses:
    instance.add_dynamic_partitions(RUN_ID, [run_id])
    stamps.clear()
    started = time.perf_counter()
    done = dg.materialize(
        assets,
        partition_key=run_id,
        instance=instance,
        resources=resources,
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
    )
    whole_s = time.perf_counter() - started
    assert done.success
    events = instance.all_logs(done.run_id, of_type={dg.DagsterEventType.STEP_START, dg.DagsterEventType.STEP_SUCCESS})
    return Pauses(_between([event.timestamp for event in events]), _between(stamps), whole_s)


def _between(begins_and_ends: list[float]) -> float:
    """The mean time from an end to the next begin."""
    assert len(begins_and_ends) == 2 * len(NAMES)
    return fmean(after - before for before, after in list(pairwise(begins_and_ends))[1::2])


_DATASETS = {
    name: Dataset(name, (Column("place", "text", "place"), Column("rank", "integer", "rank")), key=("place",))
    for name in NAMES
}


def _rows() -> pd.DataFrame:
    return pd.DataFrame({"place": pd.Series(["a", "b"], dtype="str"), "rank": pd.Series([1, 2], dtype="Int64")})


def _collection_assets() -> list[dg.AssetsDefinition]:
    assets = []
    for before, name in zip((None, *NAMES), NAMES, strict=False):
        edges = [] if before is None else [Edge(before, policy="hard", on_rerun="follow", why="speed")]
        body = _body(before)
        body.__name__ = name
        decorate = collection_asset(dataset=_DATASETS[name], edges=edges, checks=[Volume()])
        assets.append(decorate(body))
    return assets


def _body(upstream: str | None) -> Callable[..., Any]:
    def first(job: JobContext) -> Part:  # noqa: ARG001 - the decorator hands it over
        """Begins."""
        stamps.append(time.perf_counter())
        rows = _rows()
        stamps.append(time.perf_counter())
        return rows, Losses()

    if upstream is None:
        return first
    namespace: dict[str, Any] = {"work": _later, "Input": Input}
    exec(f"def later(job, {upstream}):\n    'Goes on.'\n    return work({upstream})", namespace)
    later: Callable[..., Any] = namespace["later"]
    return later


def _later(upstream: Input) -> Part:
    stamps.append(time.perf_counter())
    rows = upstream.frame()
    stamps.append(time.perf_counter())
    return rows, Losses()


def _stock_assets(checks: tuple[str, ...]) -> list[dg.AssetsDefinition]:
    return [_stock_asset(name, before, checks) for before, name in zip((None, *NAMES), NAMES, strict=False)]


def _stock_asset(name: str, before: str | None, checks: tuple[str, ...]) -> dg.AssetsDefinition:
    @dg.asset(
        name=name,
        deps=[] if before is None else [before],
        partitions_def=RUNS,
        check_specs=[dg.AssetCheckSpec(check, asset=name) for check in checks],
    )
    def work() -> dg.MaterializeResult:  # type: ignore[type-arg] # Dagster knows the bare class only
        stamps.append(time.perf_counter())
        rows = _rows()
        stamps.append(time.perf_counter())
        results = [dg.AssetCheckResult(passed=True, check_name=check) for check in checks]
        return dg.MaterializeResult(metadata={"dagster/row_count": len(rows)}, check_results=results)

    return work
