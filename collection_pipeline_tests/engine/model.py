"""The world in miniature: a store, a launcher and a sensor, in plain Python, that the planner can be tried in.

Simple on purpose: what is to be believed about the real store and the real Dagster is compared with this.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from collection_pipeline.engine.jobs.gate import NothingToDoError, NotReadyError, gate
from collection_pipeline.engine.planning.flight import LastAttempt, PlannedRun, in_flight
from collection_pipeline.engine.planning.graph import Graph
from collection_pipeline.engine.planning.lateness import late_jobs
from collection_pipeline.engine.planning.planner import Plan, plan
from collection_pipeline.engine.planning.state import Artifact, Inputs, JobState, RunState, Status
from collection_pipeline.engine.run_ids import RunId

Start = Literal["started", "nothing to do", "refused", "held"]
Outcome = Literal["succeeded", "unusable", "failed"]


def place(run_id: str) -> tuple[datetime, int]:
    """Where a run stands in the order of runs: by moment, then by suffix."""
    parsed = RunId.parse(run_id)
    return parsed.local, parsed.suffix


@dataclass
class Version:
    """One artifact and what it was made of; kept for ever, usable or not."""

    artifact: Artifact
    inputs: Inputs
    usable: bool
    retracted: bool = False

    @property
    def stands(self) -> bool:
        return self.usable and not self.retracted


@dataclass
class Row:
    """A job of one run. `outcome`: running, or how the last attempt that counts ended. `shown`: in the state table."""

    outcome: Status = "pending"
    shown: Status = "pending"
    attempted: Inputs | None = None
    dagster_run_id: str | None = None
    versions: list[Version] = field(default_factory=list)
    edition: int = 0
    """Of the outside data: a job that fetches gets other data once this is raised, and equal data until then."""

    @property
    def standing(self) -> Version | None:
        return next((version for version in reversed(self.versions) if version.stands), None)

    @property
    def current(self) -> Artifact | None:
        return self.standing.artifact if self.standing is not None else None


@dataclass
class DagsterRun:
    """A Dagster run that is not over: which jobs it is to run, and what became of those it came to."""

    dagster_run_id: str
    run_id: str
    job_ids: frozenset[str]
    automatic: bool
    steps: dict[str, Literal["running", "succeeded", "ended"]] = field(default_factory=dict)
    """By job; ended: failed, refused or with nothing to do, so that Dagster starts nothing behind it."""


class World:
    """Runs of one graph, the Dagster runs that work on them, and a clock."""

    def __init__(self, graph: Graph, now: datetime = datetime(2026, 11, 29, tzinfo=UTC)) -> None:
        self.graph = graph
        self.now = now
        self.opened: dict[str, datetime] = {}
        self.rows: dict[str, dict[str, Row]] = {}
        self.dagster_runs: dict[str, DagsterRun] = {}
        self._launched = 0

    # the store

    def open(self, run_id: str) -> None:
        RunId.parse(run_id)
        if run_id not in self.rows:
            self.opened[run_id] = self.now
            self.rows[run_id] = {job_id: Row() for job_id in self.graph.jobs}

    def moment(self, run_id: str) -> datetime:
        return RunId.parse(run_id).moment(ZoneInfo("UTC"))

    def state(self, run_id: str) -> RunState:
        """What the planner gets to see of one run."""
        planned = [PlannedRun(each.dagster_run_id, each.job_ids) for each in self.live(run_id)]
        attempts = {job_id: LastAttempt(row.dagster_run_id, row.outcome) for job_id, row in self.rows[run_id].items()}
        flying = in_flight(planned, self.graph, attempts, late_jobs(self.graph, self.opened[run_id], self.now))
        jobs = {
            job_id: JobState(row.outcome, job_id in flying, row.current, row.attempted)
            for job_id, row in self.rows[run_id].items()
        }
        fallbacks = {job_id: found for job_id in self.graph.jobs if (found := self.fallback(run_id, job_id))}
        return RunState(run_id, self.moment(run_id), self.opened[run_id], jobs, fallbacks)

    def fallback(self, run_id: str, job_id: str) -> Artifact | None:
        """The newest usable artifact of an earlier run, of those inside their shelf life if there are any."""
        shelf_life = self.graph[job_id].shelf_life
        newest: Artifact | None = None
        for earlier in sorted(self.rows, key=place, reverse=True):
            standing = self.rows[earlier][job_id].standing
            if not place(earlier) < place(run_id) or standing is None or shelf_life is None:
                continue
            newest = newest or standing.artifact
            if self.moment(run_id) - standing.artifact.as_of <= shelf_life.fail:
                return standing.artifact
        return newest

    def plan(self, run_id: str) -> Plan:
        return plan(self.graph, self.state(run_id), self.now)

    def retract(self, run_id: str, job_id: str) -> list[Artifact]:
        """Withdraw the standing version and every artifact that consumed it, except behind pinned edges."""
        first = self.rows[run_id][job_id].standing
        if first is None:
            return []
        withdrawn = [first]
        for version in withdrawn:
            version.retracted = True
            withdrawn += [reader for reader in self._readers(version.artifact) if reader not in withdrawn]
        for version in withdrawn:
            row = self.rows[version.artifact.run_id][version.artifact.job_id]
            if row.outcome == "running":
                continue  # `finish` will see to it
            row.dagster_run_id = None  # what is shown from now on is no attempt's outcome
            if row.standing is not None:
                row.outcome, row.attempted = "done", row.standing.inputs
            elif version is first:
                row.outcome = "failed"
            else:
                row.outcome, row.attempted = "pending", None
        return [version.artifact for version in withdrawn]

    def _readers(self, artifact: Artifact) -> Iterator[Version]:
        for jobs in self.rows.values():
            for consumer, edge in self.graph.consumers(artifact.job_id):
                for version in jobs[consumer.job_id].versions:
                    if edge.on_rerun == "follow" and version.stands and version.inputs.get(artifact.job_id) == artifact:
                        yield version

    # the launcher

    def live(self, run_id: str) -> list[DagsterRun]:
        return [each for each in self.dagster_runs.values() if each.run_id == run_id]

    def launch(self, run_id: str, job_ids: Collection[str], *, automatic: bool) -> DagsterRun:
        """Start a Dagster run; a person, the schedule, a backfill or a tick asked for it."""
        self.open(run_id)
        self._launched += 1
        run = DagsterRun(f"dagster-{self._launched}", run_id, frozenset(job_ids), automatic)
        self.dagster_runs[run.dagster_run_id] = run
        return run

    def startable(self, run: DagsterRun) -> list[str]:
        """The jobs whose steps Dagster would start now: all their upstream steps in the same run succeeded."""
        return [
            job.job_id
            for job in self.graph
            if job.job_id in run.job_ids.difference(run.steps)
            and all(run.steps.get(up) == "succeeded" for up in run.job_ids.intersection(job.upstreams))
        ]

    def will_start(self, run: DagsterRun, job_id: str) -> bool:
        """Whether this Dagster run will come to the job, should nothing fail in it."""
        if job_id not in run.job_ids or job_id in run.steps:
            return False
        return all(
            run.steps.get(up) in ("running", "succeeded") or self.will_start(run, up)
            for up in run.job_ids.intersection(self.graph[job_id].upstreams)
        )

    def start(self, run: DagsterRun, job_id: str) -> Start:
        """Start a step. The gate decides; another holder is not disturbed."""
        row = self.rows[run.run_id][job_id]
        result: Start = "held"
        if row.outcome != "running":
            decide = gate(self.graph, job_id, automatic=run.automatic, now=self.now)
            try:
                row.attempted = decide(self.state(run.run_id))
                row.outcome, row.shown, row.dagster_run_id = "running", "running", run.dagster_run_id
                result = "started"
            except NotReadyError:
                result = "refused"
            except NothingToDoError:
                result = "nothing to do"
        run.steps[job_id] = "running" if result == "started" else "ended"
        self._reap(run)
        return result

    def finish(self, run: DagsterRun, job_id: str, outcome: Outcome) -> None:
        """End a running step. Unusable: its artifact is stored, and a blocking check failed.

        What was retracted since the attempt read it cannot become part of a usable artifact.
        """
        row = self.rows[run.run_id][job_id]
        if outcome == "succeeded" and self._reads_retracted(run.run_id, job_id):
            outcome = "unusable"
        if outcome != "failed":
            row.versions.append(self._make(run.run_id, job_id, usable=outcome == "succeeded"))
        row.outcome = "done" if outcome == "succeeded" else "failed"
        run.steps[job_id] = "succeeded" if outcome == "succeeded" else "ended"
        self._reap(run)

    def _reads_retracted(self, run_id: str, job_id: str) -> bool:
        read = (self.rows[run_id][job_id].attempted or {}).values()
        return any(
            version.retracted
            for artifact in read
            if artifact is not None
            for version in self.rows[artifact.run_id][artifact.job_id].versions
            if version.artifact == artifact
        )

    def kill(self, run: DagsterRun) -> None:
        """The Dagster run is over, whatever it was doing; what it held is failed."""
        for job_id, step in run.steps.items():
            if step == "running":
                self.rows[run.run_id][job_id].outcome = "failed"
        del self.dagster_runs[run.dagster_run_id]

    def _make(self, run_id: str, job_id: str, *, usable: bool) -> Version:
        """What an attempt makes: the same data from the same inputs and the same edition of the outside."""
        row = self.rows[run_id][job_id]
        inputs = row.attempted or {}
        read = [artifact for artifact in inputs.values() if artifact is not None]
        as_of = min([self.moment(run_id), *(artifact.as_of for artifact in read)])
        content = repr((job_id, run_id, row.edition, usable, sorted((each.job_id, each.content_hash) for each in read)))
        degraded = as_of < self.moment(run_id) or any(each.run_id != run_id or each.degraded for each in read)
        hashed = hashlib.sha256(content.encode()).hexdigest()[:16]
        return Version(Artifact(job_id, run_id, len(row.versions) + 1, as_of, hashed, degraded), inputs, usable)

    def _reap(self, run: DagsterRun) -> None:
        if "running" not in run.steps.values() and not self.startable(run):
            del self.dagster_runs[run.dagster_run_id]

    # the sensor

    def tick(self, run_id: str) -> DagsterRun | None:
        """One look at one run: show the statuses, mark what is skipped, request what is due."""
        decided = self.plan(run_id)
        for decision in decided.decisions.values():
            row = self.rows[run_id][decision.job_id]
            row.shown = decision.status
            if decision.skips:
                row.outcome, row.attempted = "skipped", decision.inputs
        requests = decided.requests
        return self.launch(run_id, requests, automatic=True) if requests else None

    def pass_time(self, span: timedelta) -> None:
        self.now += span
