"""A small collection in the shape of the template's, made of the public pieces: the same jobs, edges and windows.

Its bodies do what a script says and need no source. The schedule, the sensor and the store are the real ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import dagster as dg

from collection_pipeline.automation import collection_job, daily_schedule
from collection_pipeline.engine.checks import AnyVolume, Present, Volume
from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.datasets import Column, Dataset
from collection_pipeline.engine.jobs.asset import COLLECTION_RESOURCE, collection_asset, graph_of
from collection_pipeline.engine.jobs.job import Input, JobContext, Losses, Part, Product
from collection_pipeline.engine.planning.edges import Edge, OnRerun
from collection_pipeline.engine.planning.graph import Graph
from collection_pipeline.engine.runs.executor import carrying_on
from collection_pipeline_tests.dagster.quick_sensor import quick_sensor
from collection_pipeline_tests.dagster.script import Script

if TYPE_CHECKING:
    import pandas as pd
    from upath import UPath

    from collection_pipeline.engine.store import Store, Transition
    from collection_pipeline.sources.contract import Source

JOBS = ("search_results", "detail_pages", "news_mentions", "daily_report", "summary")

DATASETS = {
    name: Dataset(
        name,
        (
            Column("feature_id", "text", "which place"),
            Column("edition", "integer", "which edition of the outside world"),
            Column("made_of", "text", "the versions that these rows were made of: other inputs make other rows"),
        ),
        key=("feature_id",),
    )
    for name in JOBS
}

RETRIES = dg.RetryPolicy(max_retries=1)


def rows(feature_ids: Sequence[str], edition: int, made_of: str) -> pd.DataFrame:
    """A frame in the data sets' one shape."""
    import pandas as pd

    size = len(feature_ids)
    return pd.DataFrame(
        {
            "feature_id": pd.array(list(feature_ids), dtype="str"),
            "edition": pd.array([edition] * size, dtype="Int64"),
            "made_of": pd.array([made_of] * size, dtype="str"),
        }
    )


def assets(
    script: Script, *, report_on_rerun: OnRerun = "follow", report_due: str = "0 8 * * *"
) -> list[dg.AssetsDefinition]:
    """The four assets, in data order; the report is due at a cron tick, in UTC."""

    @collection_asset(
        dataset=DATASETS["search_results"],
        checks=[Present("feature_id"), Volume(min_rows=0, min_share=0.5)],
        retry_policy=RETRIES,
    )
    def search_results(job: JobContext) -> Part:
        """Finds as many places as the script says."""
        turn = script.play(job.job_id, job.run_id)
        return rows([f"0x{place:x}:0x1" for place in range(turn.rows)], turn.edition, job.run_id), Losses()

    @collection_asset(
        dataset=DATASETS["detail_pages"],
        edges=[Edge("search_results", policy="hard", on_rerun="follow", why="details of what was found")],
        checks=[Volume(min_rows=1, min_share=0.5)],
        freshness_policy=dg.FreshnessPolicy.time_window(warn_window=timedelta(hours=36), fail_window=timedelta(days=3)),
        retry_policy=RETRIES,
    )
    def detail_pages(job: JobContext, search_results: Input) -> Part:
        """One row for each place that was found."""
        return _made_of(search_results, script, job)

    @collection_asset(
        dataset=DATASETS["news_mentions"],
        edges=[Edge("detail_pages", policy="skip", on_rerun="follow", why="news about the places of this run")],
        checks=[AnyVolume(why="some days have no news")],
        retry_policy=RETRIES,
    )
    def news_mentions(job: JobContext, detail_pages: Input) -> Part:
        """One row for each place with details."""
        return _made_of(detail_pages, script, job)

    @collection_asset(
        dataset=DATASETS["daily_report"],
        edges=[
            Edge("detail_pages", policy="degrade", on_rerun=report_on_rerun, why="yesterday's details beat no report"),
            Edge("news_mentions", policy="optional", on_rerun=report_on_rerun, why="one section"),
        ],
        checks=[AnyVolume(why="it lists what it is given")],
        freshness_policy=dg.FreshnessPolicy.cron(deadline_cron=report_due, lower_bound_delta=timedelta(hours=8)),
    )
    def daily_report(job: JobContext, detail_pages: Input, news_mentions: Input | None) -> Product:
        """Says what it stands on in a file, and lists the places."""
        frame, losses = _made_of(detail_pages, script, job, news_mentions)
        missing = job.missing("news_mentions")
        said = [f"as of {job.as_of:%Y-%m-%d}", *(() if missing is None else ("without news_mentions", missing))]
        return Product([(frame, losses)], files={"report.txt": "\n".join(said).encode()})

    return [search_results, detail_pages, news_mentions, daily_report]


def summary_of_search(script: Script) -> dg.AssetsDefinition:
    """A fifth job, which somebody adds one day."""

    @collection_asset(
        dataset=DATASETS["summary"],
        edges=[Edge("search_results", policy="optional", on_rerun="follow", why="says what was found")],
        checks=[AnyVolume(why="it lists what it is given, if anything")],
    )
    def summary(job: JobContext, search_results: Input | None) -> Part:
        """One row for each place that was found, if any."""
        if search_results is not None:
            return _made_of(search_results, script, job)
        return rows([], script.play(job.job_id, job.run_id).edition, ""), Losses()

    return summary


def _made_of(upstream: Input, script: Script, job: JobContext, *others: Input | None) -> Part:
    turn = script.play(job.job_id, job.run_id)
    made_of = " ".join(each.artifact.content_hash if each else "nothing" for each in (upstream, *others))
    return rows(list(upstream.frame()["feature_id"]), turn.edition, made_of), Losses()


def collection(graph: Graph, script: Script) -> Collection:
    """The collection around the script: its store, reports, clock and alerts lie in the script's folder."""
    return Collection(
        graph=graph,
        datasets=DATASETS,
        timezone=ZoneInfo("UTC"),
        settings=None,
        max_credits=None,
        source_label="script",
        open_store=partial(_open_store, script),
        open_source=_no_source,
        open_reports=partial(_open_reports, script),
        send=partial(_send, script),
        now=script.now,
    )


def definitions(jobs: Sequence[dg.AssetsDefinition], script: Script, **changes: Any) -> dg.Definitions:
    """What Dagster loads: as in the template, and a second job that somebody wrote for the details alone.

    `changes` are to the fields of its collection.
    """
    made_of = replace(collection(graph_of(jobs), script), **changes)
    made: dg.Definitions = dg.Definitions(
        assets=jobs,
        jobs=[
            collection_job,
            dg.define_asset_job("details_job", dg.AssetSelection.assets("detail_pages")),
        ],
        schedules=[daily_schedule],
        sensors=[quick_sensor],
        resources={COLLECTION_RESOURCE: made_of},
        executor=carrying_on(made_of, lambda: made.resolve_job_def(collection_job.name)),
    )
    return made


def _open_store(script: Script) -> Store:
    from collection_pipeline.engine.store import Store

    return Store.open(f"sqlite:///{script.folder / 'collection.db'}")


def _open_reports(script: Script) -> UPath:
    from upath import UPath

    return UPath(script.folder / "reports")


def _no_source(moment: datetime) -> AbstractContextManager[Source]:
    raise AssertionError(f"nothing of {moment} has to be bought")


def _send(script: Script, store: Store, transitions: Sequence[Transition]) -> None:
    for transition in transitions:
        script.alert(f"{'Alert' if transition.change == 'opened' else 'Over'}: {transition.key}")
        store.mark_delivered(transition)
