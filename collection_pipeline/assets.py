"""The four assets in data order: search, the detail pages of what it found, news about its top places, the report.

Each declares its edges beside it and has the same beats: inputs by edge, one source call if it fetches, one pure step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import dagster as dg

from collection_pipeline import steps
from collection_pipeline.datasets import DAILY_REPORT, DETAIL_PAGES, NEWS_MENTIONS, SEARCH_RESULTS
from collection_pipeline.engine.checks import AnyVolume, CallCounts, Coverage, Fruitful, Present, Volume, calls_covered
from collection_pipeline.engine.jobs.asset import collection_asset
from collection_pipeline.engine.jobs.job import Input, JobContext, Losses, Part, Product
from collection_pipeline.engine.planning.edges import Edge
from collection_pipeline.queries import load_queries
from collection_pipeline.settings import settings
from collection_pipeline.sources.contract import EMULATOR

if TYPE_CHECKING:
    from collection_pipeline.engine.store import Ancestor
    from collection_pipeline.sources.contract import Answer
    from collection_pipeline.steps import report

SOURCE_POOL = "serpbase"
"""Concurrency pool of everything that calls the source; its limit is set in dagster.yaml or in the UI."""

SOURCE_RETRIES = dg.RetryPolicy(max_retries=2, delay=5, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS)
"""After the client's own retries, the whole job is tried again; what was paid for is kept."""


@collection_asset(
    dataset=SEARCH_RESULTS,
    checks=[Present("feature_id"), Coverage(hard=0.9), Fruitful("queries"), Volume(min_rows=1, min_share=0.5)],
    retry_policy=SOURCE_RETRIES,
    pool=SOURCE_POOL,
    kinds={"serpbase"},
)
def search_results(job: JobContext) -> Part:
    """Map search results: one row per query and place, with its rank across the query's pages."""
    queries = load_queries(job.settings.queries)
    answers: list[Answer] = []
    for page in range(1, steps.search.last_page(queries) + 1):
        answers += job.fetch(steps.search.requests(queries, page, answers))
    return steps.search.rows(queries, answers)


@collection_asset(
    dataset=DETAIL_PAGES,
    edges=[
        Edge(
            "search_results",
            policy="hard",
            on_rerun="follow",
            why="details are fetched by the feature_ids that this run's search found",
        )
    ],
    checks=[Coverage(hard=0.8), Volume(min_rows=1, min_share=0.5)],
    freshness_policy=dg.FreshnessPolicy.time_window(warn_window=timedelta(hours=36), fail_window=timedelta(days=3)),
    retry_policy=SOURCE_RETRIES,
    pool=SOURCE_POOL,
    kinds={"serpbase"},
)
def detail_pages(job: JobContext, search_results: Input) -> Iterator[Part]:
    """Detail pages: one row per distinct place that the search found."""
    found = search_results.frame(steps.detail.NEEDED)
    answers = job.fetch(steps.detail.requests(found))
    return steps.detail.rows(found, answers)


@collection_asset(
    dataset=NEWS_MENTIONS,
    edges=[
        Edge(
            "detail_pages",
            policy="skip",
            on_rerun="follow",
            why="news is looked up for this run's top places; the daily report can live without it",
        )
    ],
    checks=[Coverage(hard=0.5), AnyVolume(why="some days have no news")],
    retry_policy=SOURCE_RETRIES,
    pool=SOURCE_POOL,
    kinds={"serpbase"},
)
def news_mentions(job: JobContext, detail_pages: Input) -> Part:
    """News about the top places of the run: one row per place and news item."""
    places = detail_pages.frame()
    return steps.news.rows(places, job.fetch(steps.news.requests(places)))


@collection_asset(
    dataset=DAILY_REPORT,
    edges=[
        Edge(
            "detail_pages",
            policy="degrade",
            on_rerun="follow",
            why="a report on yesterday's details, saying so, beats no report",
        ),
        Edge("news_mentions", policy="optional", on_rerun="follow", why="one section of the report"),
    ],
    checks=[Volume(min_rows=1, min_share=0.5)],
    freshness_policy=dg.FreshnessPolicy.cron(
        deadline_cron="0 8 * * *", lower_bound_delta=timedelta(hours=8), timezone=settings().timezone.key
    ),
    kinds={"html", "csv", "xlsx"},
)
def daily_report(job: JobContext, detail_pages: Input, news_mentions: Input | None) -> Product:
    """The day's report: a self-contained HTML page, and the same table as CSV and XLSX."""
    previous = job.previous(DAILY_REPORT)
    # What the data came from, which need not be the source of today: a fallback may be older than a change of source.
    sources = dict.fromkeys(each.source for each in job.lineage if each.source)
    report = steps.report.build(
        steps.report.Inputs(
            run_id=job.run_id,
            moment=job.moment,
            as_of=job.as_of,
            collected_at=job.collected_at,
            timezone=job.timezone,
            language=job.settings.language,
            source=", ".join(sources),
            emulated=EMULATOR in sources,
            details=detail_pages.frame(),
            news=None if news_mentions is None else news_mentions.frame(),
            news_status=job.missing("news_mentions"),
            previous=None if previous is None else previous.frame(),
            previous_run_id="" if previous is None else previous.artifact.run_id,
            coverage=_coverage(detail_pages, job.lineage),
            provenance=[_provenance(each, job.run_id) for each in job.lineage],
        )
    )
    return Product([(report.frame, Losses())], files=report.files, metadata={"summary": report.summary})


ASSETS = (search_results, detail_pages, news_mentions, daily_report)
"""In data order."""


def _provenance(ancestor: Ancestor, run_id: str) -> report.Provenance:
    artifact = ancestor.artifact
    return steps.report.Provenance(
        artifact.job_id,
        artifact.run_id,
        artifact.version,
        artifact.as_of,
        artifact.stands_on_older_data(run_id),
        ancestor.row_count,
        ancestor.credits_charged,
        ancestor.request_ids,
        ancestor.request_count,
        ancestor.source or "",
    )


def _coverage(details: Input, lineage: Sequence[Ancestor]) -> CallCounts | None:
    """How the calls behind the details ended, as their coverage check counted them."""
    return next((calls_covered(each.checks) for each in lineage if each.artifact == details.artifact), None)
