"""One run with all that people ask about it, and the list of runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

import sqlalchemy as sa

from collection_pipeline.engine.holders import Holder
from collection_pipeline.engine.planning.graph import Graph
from collection_pipeline.engine.planning.state import Artifact, Inputs, Status
from collection_pipeline.engine.store.attempts import holder_of
from collection_pipeline.engine.store.ledger import Credits
from collection_pipeline.engine.store.lineage import collected_at
from collection_pipeline.engine.store.part import StorePart
from collection_pipeline.engine.store.references import ARTIFACT_COLUMNS, artifact_of, inputs_from_json
from collection_pipeline.engine.store.runs import stored_graph, unknown_run, zone_of
from collection_pipeline.engine.store.schema import artifact_inputs, artifacts, graphs, jobs, runs


@dataclass(frozen=True, slots=True)
class InputView:
    """One input that an artifact was made of (`artifact` None: made without it), and what became of it since."""

    upstream: str
    policy: str
    on_rerun: str
    artifact: Artifact | None
    retracted: bool


@dataclass(frozen=True, slots=True)
class ArtifactView:
    """One artifact with its manifest. `checks`, `metadata` and `files` are as they were published."""

    artifact: Artifact
    usable: bool
    row_count: int
    source: str | None
    published_at: datetime
    retracted_at: datetime | None
    retract_reason: str | None
    credits_charged: int
    credits_reused: int
    checks: list[dict[str, Any]]
    metadata: dict[str, Any]
    files: list[dict[str, Any]]
    inputs: tuple[InputView, ...]


@dataclass(frozen=True, slots=True)
class JobView:
    """One row of the state table. `status` is what it shows, `outcome` running or how the last attempt ended.

    `current` is the artifact that consumers read, `latest` the newest version, which may be unusable or retracted.
    `adopted`: the last attempt might use the answers of `latest` as well, and published nothing. `removed`: the run's
    graph no longer has the job.
    """

    job_id: str
    deps: tuple[str, ...]
    status: Status
    outcome: Status
    attempts: int
    started_at: datetime | None
    finished_at: datetime | None
    reason: str | None
    error_kind: str | None
    attempted: Inputs | None
    holder: Holder | None
    adopted: bool
    removed: bool
    credits: Credits
    current: ArtifactView | None
    latest: ArtifactView | None

    @property
    def dagster_run_id(self) -> str | None:
        """The Dagster run that made the last attempt."""
        return None if self.holder is None else self.holder.dagster_run_id


@dataclass(frozen=True, slots=True)
class RunView:
    """One run; its jobs are in the order of its graph, upstreams first, removed ones last.

    `collected_at`: when the last of what its artifacts were made from was collected; None without artifacts.
    """

    run_id: str
    moment: datetime
    timezone: tzinfo
    opened_at: datetime
    settled_at: datetime | None
    collected_at: datetime | None
    graph: Graph
    jobs: tuple[JobView, ...]

    @property
    def credits(self) -> Credits:
        """What the run cost so far."""
        each = [job.credits for job in self.jobs]
        return Credits(
            sum(part.charged for part in each),
            sum(part.reused for part in each),
            sum(part.possibly_billed for part in each),
        )


class Views(StorePart):
    """What `collect status` and `why` read, in a fixed number of queries."""

    def run_view(self, run_id: str) -> RunView:
        """Everything about one run. Raises `UnknownRunError`, `UnreadableRunError`."""
        with self.database.read() as connection:
            query = sa.select(runs, graphs.c.graph).join(graphs, graphs.c.graph_hash == runs.c.graph_hash)
            run = connection.execute(query.where(runs.c.run_id == run_id)).one_or_none()
            if run is None:
                raise unknown_run(run_id)
            graph = stored_graph(run_id, run.graph)
            current, latest = _artifacts(connection, run_id)
            collected = collected_at(connection, _shown_by(run_id))
            rows = connection.execute(sa.select(jobs).where(jobs.c.run_id == run_id)).all()
        order = {job_id: place for place, job_id in enumerate(graph.jobs)}
        rows = sorted(rows, key=lambda row: (order.get(row.job_id, len(order)), row.job_id))
        views = tuple(_job_view(row, current.get(row.job_id), latest.get(row.job_id)) for row in rows)
        return RunView(run_id, run.moment, zone_of(run), run.opened_at, run.settled_at, collected, graph, views)

    def newest_runs(self, count: int) -> list[str]:
        """The run_ids of the last runs in the order of runs, `count` of them at the most, newest first."""
        newest = sa.select(runs.c.run_id).order_by(runs.c.moment.desc(), runs.c.suffix.desc(), runs.c.run_id.desc())
        with self.database.read() as connection:
            return list(connection.execute(newest.limit(count)).scalars())


def _shown_by(run_id: str) -> sa.Select[int]:
    """The artifacts that the jobs of the run's graph show as theirs."""
    is_removed = sa.exists().where(jobs.c.run_id == run_id, jobs.c.job_id == artifacts.c.job_id, jobs.c.removed)
    return sa.select(artifacts.c.artifact_id).where(artifacts.c.run_id == run_id, artifacts.c.is_current, ~is_removed)


def _artifacts(connection: sa.Connection, run_id: str) -> tuple[dict[str, ArtifactView], dict[str, ArtifactView]]:
    """By job, the current artifact and the latest version."""
    newest = (
        sa.select(sa.func.max(artifacts.c.artifact_id)).where(artifacts.c.run_id == run_id).group_by(artifacts.c.job_id)
    )
    shown = (artifacts.c.run_id == run_id) & (artifacts.c.is_current | artifacts.c.artifact_id.in_(newest))
    inputs = _inputs(connection, sa.select(artifacts.c.artifact_id).where(shown))
    current, latest = {}, {}
    for row in connection.execute(sa.select(artifacts).where(shown).order_by(artifacts.c.version)):
        view = _artifact_view(row, tuple(inputs.get(row.artifact_id, ())))
        latest[row.job_id] = view
        if row.is_current:
            current[row.job_id] = view
    return current, latest


def _inputs(connection: sa.Connection, of: sa.Select[int]) -> dict[int, list[InputView]]:
    columns = [column for column in ARTIFACT_COLUMNS if column is not artifacts.c.artifact_id]
    query = (
        sa.select(artifact_inputs, *columns, artifacts.c.retracted_at)
        .outerjoin(artifacts, artifacts.c.artifact_id == artifact_inputs.c.input_artifact_id)
        .where(artifact_inputs.c.artifact_id.in_(of))
        .order_by(artifact_inputs.c.artifact_id, artifact_inputs.c.upstream)
    )
    views: dict[int, list[InputView]] = {}
    for row in connection.execute(query):
        is_there, is_retracted = row.input_artifact_id is not None, row.retracted_at is not None
        artifact = artifact_of(row) if is_there else None
        view = InputView(row.upstream, row.policy, row.on_rerun, artifact, is_retracted)
        views.setdefault(row.artifact_id, []).append(view)
    return views


def _artifact_view(row: sa.Row[Any], inputs: tuple[InputView, ...]) -> ArtifactView:
    return ArtifactView(
        artifact_of(row),
        row.usable,
        row.row_count,
        row.source,
        row.published_at,
        row.retracted_at,
        row.retract_reason,
        row.credits_charged,
        row.credits_reused,
        row.checks,
        row.metadata,
        row.files,
        inputs,
    )


def _job_view(row: sa.Row[Any], current: ArtifactView | None, latest: ArtifactView | None) -> JobView:
    return JobView(
        row.job_id,
        tuple(row.deps),
        row.status,
        row.outcome,
        row.attempt,
        row.started_at,
        row.finished_at,
        row.reason,
        row.error_kind,
        inputs_from_json(row.attempted),
        None if row.dagster_run_id is None else holder_of(row),
        row.oldest_generation < row.generation,
        row.removed,
        Credits(row.credits_charged, row.credits_reused, row.credits_possibly_billed),
        current,
        latest,
    )
