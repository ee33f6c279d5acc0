"""Runs: opened once, settled by the planner's word, opened again by whatever changes their state."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import sqlalchemy as sa

from collection_pipeline.engine.planning.graph import Graph, GraphError, Job
from collection_pipeline.engine.run_ids import RunId
from collection_pipeline.engine.store.database import Database
from collection_pipeline.engine.store.errors import UnknownRunError, UnreadableRunError
from collection_pipeline.engine.store.part import StorePart
from collection_pipeline.engine.store.schema import artifacts, graphs, jobs, runs


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run that is not settled."""

    run_id: str
    moment: datetime
    opened_at: datetime
    graph_hash: str


def graph_hash(graph: Graph) -> str:
    """The name under which a graph is stored: sha256 (hex) of its JSON."""
    return hashlib.sha256(graph.to_json().encode()).hexdigest()


def lock_run(connection: sa.Connection, run_id: str) -> sa.Row[Any]:
    """The row of the run, locked until the transaction ends. Always taken before any lock on its jobs, so that no two
    transactions wait for each other. Raises `UnknownRunError`."""
    row = connection.execute(sa.select(runs).where(runs.c.run_id == run_id).with_for_update()).one_or_none()
    if row is None:
        raise unknown_run(run_id)
    return row


def zone_of(run: sa.Row[Any]) -> tzinfo:
    """The time zone of a run, from its row in `runs`: the one it was opened in, whatever the settings say by now.

    Runs from before schema 2 did not keep it. Theirs is the offset from UTC that their name and moment show, which is
    the zone's own but for clock changes. Raises `UnreadableRunError`.
    """
    if run.timezone is not None:
        try:
            return ZoneInfo(run.timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise UnreadableRunError(
                f"Run {run.run_id} was opened in the time zone {run.timezone}, which this host does not know. The run"
                " is kept as it is. Bring the zones up to date here: pip install --upgrade tzdata"
            ) from error
    return timezone(RunId.parse(run.run_id).local.replace(tzinfo=UTC) - run.moment)


def stored_graph(run_id: str, stored: str) -> Graph:
    """The graph that a run goes by, from what was stored of it. Raises `UnreadableRunError`."""
    try:
        return Graph.from_json(stored)
    except GraphError as error:
        raise UnreadableRunError(f"Run {run_id} cannot be read, and is kept as it is. {error}") from error


def unknown_run(run_id: str) -> UnknownRunError:
    return UnknownRunError(f"There is no run {run_id}. Open it with: collect run {run_id}")


def touch(connection: sa.Connection, run_ids: Collection[str]) -> None:
    """Note that the state of these runs changed: they are open, and plans made before are stale."""
    changed = runs.update().where(runs.c.run_id.in_(run_ids))
    connection.execute(changed.values(revision=runs.c.revision + 1, settled_at=None))


class Runs(StorePart):
    """Opening runs, finding the open ones, and giving them a changed graph."""

    def open_run(self, run_id: RunId, timezone: ZoneInfo, graph: Graph, now: datetime) -> bool:
        """Open a run with all its jobs pending; True if it is new. A run that exists is left as it is.

        `timezone` is the zone of its name, and of its days from then on; `now` the instant it is opened.
        """
        with self.database.write() as connection:
            remembered = _remember(self.database, connection, graph)
            row = {
                "run_id": run_id.text,
                "moment": run_id.moment(timezone),
                "suffix": run_id.suffix,
                "opened_at": now,
                "graph_hash": remembered,
                "timezone": timezone.key,
            }
            insert = self.database.insert_new(runs).values(row).returning(runs.c.run_id)
            is_new = connection.execute(insert).one_or_none() is not None
            if is_new:
                _insert_jobs(connection, str(run_id), graph)
            return is_new

    def reopen(self, run_id: str) -> None:
        """Have the planner look at a settled run again. Raises `UnknownRunError`."""
        with self.database.write() as connection:
            lock_run(connection, run_id)
            touch(connection, [run_id])

    def open_runs(self) -> list[OpenRun]:
        """The runs that are not settled, oldest first: one query over an index of just those."""
        query = (
            sa.select(runs.c.run_id, runs.c.moment, runs.c.opened_at, runs.c.graph_hash)
            .where(runs.c.settled_at.is_(None))
            .order_by(runs.c.moment, runs.c.suffix)
        )
        with self.database.read() as connection:
            return [OpenRun(*row) for row in connection.execute(query)]

    def goes_by(self, run_id: str, graph: Graph) -> bool:
        """Whether this is the graph that the run goes by. Raises `UnknownRunError`."""
        with self.database.read() as connection:
            name = connection.execute(sa.select(runs.c.graph_hash).where(runs.c.run_id == run_id)).scalar()
        if name is None:
            raise unknown_run(run_id)
        return bool(name == graph_hash(graph))

    def graph_of(self, run_id: str) -> Graph:
        """The graph the run goes by. Raises `UnknownRunError`, `UnreadableRunError`."""
        query = sa.select(graphs.c.graph).join(runs, runs.c.graph_hash == graphs.c.graph_hash)
        with self.database.read() as connection:
            text = connection.execute(query.where(runs.c.run_id == run_id)).scalar()
        if text is None:
            raise unknown_run(run_id)
        return stored_graph(run_id, text)

    def adopt_graph(self, run_id: str, graph: Graph) -> bool:
        """Give an open run the graph of today; True if that changed anything. A settled run keeps the one it has.

        New jobs become pending. Removed ones lose their row if they never ran; otherwise the row stays, marked, because
        their artifacts do.
        """
        with self.database.write() as connection:
            run = lock_run(connection, run_id)
            if run.settled_at is not None or run.graph_hash == graph_hash(graph):
                return False
            remembered = _remember(self.database, connection, graph)
            connection.execute(runs.update().where(runs.c.run_id == run_id).values(graph_hash=remembered))
            _rewrite_jobs(connection, run_id, graph)
            touch(connection, [run_id])
            return True


def _remember(database: Database, connection: sa.Connection, graph: Graph) -> str:
    name = graph_hash(graph)
    connection.execute(database.insert_new(graphs).values(graph_hash=name, graph=graph.to_json()))
    return name


def _insert_jobs(connection: sa.Connection, run_id: str, added: Collection[Job] | Graph) -> None:
    rows = [{"run_id": run_id, "job_id": job.job_id, "deps": list(job.upstreams)} for job in added]
    if rows:
        connection.execute(jobs.insert(), rows)


def _rewrite_jobs(connection: sa.Connection, run_id: str, graph: Graph) -> None:
    of_run = jobs.c.run_id == run_id
    known = {row.job_id: row for row in connection.execute(sa.select(jobs).where(of_run).with_for_update())}
    _insert_jobs(connection, run_id, [job for job in graph if job.job_id not in known])
    for job in graph:
        row = known.get(job.job_id)
        if row is not None and (list(row.deps) != list(job.upstreams) or row.removed):
            same = of_run & (jobs.c.job_id == job.job_id)
            connection.execute(jobs.update().where(same).values(deps=list(job.upstreams), removed=False))
    gone = of_run & jobs.c.job_id.in_([job_id for job_id in known if job_id not in graph])
    has_artifacts = sa.exists().where(artifacts.c.run_id == jobs.c.run_id, artifacts.c.job_id == jobs.c.job_id)
    connection.execute(jobs.delete().where(gone, jobs.c.attempt == 0, ~has_artifacts))
    connection.execute(jobs.update().where(gone).values(removed=True))
