"""Short hands for graphs and states, so that a test shows only what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from collection_pipeline.engine.planning.edges import Edge, OnRerun, Policy
from collection_pipeline.engine.planning.graph import Deadline, Graph, Job, ShelfLife
from collection_pipeline.engine.planning.state import Artifact, Inputs, JobState, RunState, Status

RUN_ID = "2026-11-29"
MOMENT = datetime(2026, 11, 29, tzinfo=UTC)
NINE = Deadline("0 9 * * *")
BEFORE_NINE = MOMENT.replace(hour=8)
AFTER_NINE = MOMENT.replace(hour=9)
THREE_DAYS = ShelfLife(timedelta(days=3), timedelta(hours=36))


def edge(upstream: str, policy: Policy = "hard", on_rerun: OnRerun = "follow", why: str = "for the test") -> Edge:
    return Edge(upstream, policy=policy, on_rerun=on_rerun, why=why)


def job(job_id: str, *edges: Edge, shelf_life: ShelfLife | None = THREE_DAYS, deadline: Deadline | None = None) -> Job:
    return Job(job_id, edges, shelf_life, deadline)


def collection_graph(report_on_rerun: OnRerun = "follow") -> Graph:
    """The template's own graph, which shows all four policies."""
    return Graph.build(
        [
            job("search_results"),
            job("detail_pages", edge("search_results", "hard")),
            job("news_mentions", edge("detail_pages", "skip")),
            job(
                "daily_report",
                edge("detail_pages", "degrade", report_on_rerun),
                edge("news_mentions", "optional", report_on_rerun),
                deadline=NINE,
            ),
        ]
    )


def artifact(job_id: str, version: int = 1, run_id: str = RUN_ID, as_of: datetime | None = None) -> Artifact:
    """An artifact whose content differs from that of every other version; as of its run's date unless told."""
    if as_of is None:
        as_of = datetime.fromisoformat(run_id).replace(tzinfo=UTC)
    return Artifact(job_id, run_id, version, as_of, f"content {version}")


def state(
    status: Status = "pending",
    current: Artifact | None = None,
    attempted: Inputs | None = None,
    *,
    in_flight: bool | None = None,
) -> JobState:
    """A job's state; a running job is in flight without saying so."""
    return JobState(status, status == "running" if in_flight is None else in_flight, current, attempted)


def run_state(jobs: Mapping[str, JobState], *fallbacks: Artifact) -> RunState:
    return RunState(RUN_ID, MOMENT, MOMENT, jobs, {each.job_id: each for each in fallbacks})


def done(job_id: str, version: int = 1, **attempted: Artifact | None) -> JobState:
    return state("done", artifact(job_id, version), attempted)


def failed(current: Artifact | None = None, **attempted: Artifact | None) -> JobState:
    return state("failed", current, attempted)


RUNNING = state("running", attempted={})

SEARCH, DETAILS, NEWS = artifact("search_results"), artifact("detail_pages"), artifact("news_mentions")
WHOLE = {
    "search_results": done("search_results"),
    "detail_pages": done("detail_pages", search_results=SEARCH),
    "news_mentions": done("news_mentions", detail_pages=DETAILS),
    "daily_report": done("daily_report", detail_pages=DETAILS, news_mentions=NEWS),
}
"""The jobs of a run of `collection_graph` in which everything succeeded."""
