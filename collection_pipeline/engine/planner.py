"""What may run, what waits, what is skipped: one pure function over the state of one run.

Level-triggered: it reads the state as it is, never events, so a missed tick or a restart loses nothing. No clock, no I/O,
no Dagster. The sensor, `collect`, the rerun preview and the gate inside every asset all decide through `plan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from cronsim import CronSim

from collection_pipeline.engine.edges import Edge, Policy
from collection_pipeline.engine.graph import Graph, Job

Status = Literal["pending", "running", "done", "failed", "skipped"]

Outlook = Literal["delivering", "unavailable", "settled"]
"""What a job promises its consumers: a result to come, none by itself, or the one that stands."""

Resolution = Literal["use", "fallback", "without", "wait", "blocked", "skip"]
"""What one edge says to its consumer. The first three let it run; see `resolve`."""

Readiness = Literal["run", "wait", "blocked", "skip"]
"""What all edges together say. Skip beats blocked, blocked beats wait, wait beats run."""

_SEVERITY: tuple[Readiness, ...] = ("run", "wait", "blocked", "skip")


@dataclass(frozen=True, slots=True)
class Artifact:
    """A usable artifact: its identity, the moment its data speaks of (UTC), and the hash of its content."""

    job_id: str
    run_id: str
    version: int
    as_of: datetime
    content_hash: str
    degraded: bool = False

    def same_data(self, other: Artifact | None) -> bool:
        """Whether consuming `other` instead would change nothing: same run, equal content, equal as_of."""
        return other is not None and (self.run_id, self.content_hash, self.as_of) == (
            other.run_id,
            other.content_hash,
            other.as_of,
        )


Inputs = Mapping[str, Artifact | None]
"""What an attempt consumed, by upstream job_id; None where it had nothing of that upstream."""


@dataclass(frozen=True, slots=True)
class JobState:
    """One row of the state table, as far as decisions need it.

    `status`: running, or how the last attempt ended; pending if there was none that still counts.
    `in_flight`: running, or planned by a Dagster run that is not over. `current`: the newest usable artifact of this run.
    `attempted`: what the last attempt consumed, or would have when it was skipped; None as for pending.
    """

    status: Status = "pending"
    in_flight: bool = False
    current: Artifact | None = None
    attempted: Inputs | None = None


@dataclass(frozen=True, slots=True)
class RunState:
    """One run: its moment and opening (aware), its jobs, and the newest usable artifact of an earlier run by job_id."""

    run_id: str
    moment: datetime
    opened_at: datetime
    jobs: Mapping[str, JobState] = field(default_factory=dict)
    fallbacks: Mapping[str, Artifact] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EdgeDecision:
    """What one edge says now, with the facts it was decided on: the artifact if any, the upstream, and whether it is late."""

    edge: Edge
    resolution: Resolution
    upstream: JobState
    outlook: Outlook
    late: bool
    artifact: Artifact | None = None
    ageing: bool = False
    """The fallback is past the warn window of its shelf life, but not past the fail window."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One job: what its edges say together, whether it wants to run at all, and what it would consume."""

    job_id: str
    state: JobState
    edges: tuple[EdgeDecision, ...]
    readiness: Readiness
    wanted: bool

    @property
    def inputs(self) -> Inputs:
        """What the job would consume if it started now. Meaningful when `readiness` is "run"."""
        return {decision.edge.upstream: decision.artifact for decision in self.edges}

    @property
    def due(self) -> bool:
        """To be started now."""
        return self.wanted and self.readiness == "run" and not self.state.in_flight

    @property
    def skips(self) -> bool:
        """To be marked skipped now. A job that has an artifact keeps it instead."""
        return self.wanted and self.readiness == "skip" and self.state.current is None and not self.state.in_flight

    @property
    def blocked(self) -> bool:
        """Wants to run and cannot until somebody repairs an upstream."""
        return self.wanted and self.readiness == "blocked" and not self.state.in_flight

    @property
    def outlook(self) -> Outlook:
        if self.state.in_flight or (self.wanted and self.readiness in ("run", "wait")):
            return "delivering"
        if self.wanted or self.state.status in ("failed", "skipped") or self.state.current is None:
            return "unavailable"
        return "settled"

    @property
    def status(self) -> Status:
        """The status that the state table should show."""
        if self.state.status == "running":
            return "running"
        if self.skips:
            return "skipped"
        return "pending" if self.wanted else self.state.status

    @property
    def outdated(self) -> bool:
        """Holds an artifact although a pinned upstream of the same run has moved on since."""
        attempted = self.state.attempted
        return self.state.current is not None and any(
            decision.edge.on_rerun == "pin"
            and decision.resolution == "use"
            and decision.edge.upstream in (attempted or {})
            and _differs(decision, attempted)
            for decision in self.edges
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """The decisions of one run, upstreams first."""

    decisions: Mapping[str, Decision]

    @property
    def requests(self) -> tuple[str, ...]:
        """The jobs to start as one Dagster run: those due now, and those that wait for nothing but them."""
        chosen: list[str] = []
        for decision in self.decisions.values():
            waits = [edge.edge.upstream for edge in decision.edges if edge.resolution == "wait"]
            joins = decision.wanted and decision.readiness == "wait" and all(name in chosen for name in waits)
            if decision.due or (joins and not decision.state.in_flight):
                chosen.append(decision.job_id)
        return tuple(chosen)

    @property
    def settled(self) -> bool:
        """Nothing is in flight and nothing will start by itself."""
        return not any(
            decision.outlook == "delivering" or decision.skips for decision in self.decisions.values()
        )


def plan(graph: Graph, run: RunState, now: datetime) -> Plan:
    """Decide every job of one run. Pure: equal arguments give equal plans."""
    decisions: dict[str, Decision] = {}
    for job in graph:
        state = run.jobs.get(job.job_id, JobState())
        late = is_late(job, run.opened_at, now)
        edges = tuple(_decide_edge(edge, graph, run, decisions[edge.upstream], late) for edge in job.edges)
        readiness = max((_readiness(edge) for edge in edges), key=_SEVERITY.index, default="run")
        decisions[job.job_id] = Decision(job.job_id, state, edges, readiness, _wanted(state, edges))
    return Plan(decisions)


def resolve(
    policy: Policy, outlook: Outlook, current: Artifact | None, late: bool, fallback: Artifact | None
) -> tuple[Resolution, Artifact | None]:
    """The decision table: what an edge says, by policy and by the state of its upstream.

    `late` matters only while the upstream is still to deliver; `fallback` is already inside its shelf life.
    """
    gives_up_waiting = late and policy in ("degrade", "optional")
    if outlook == "delivering" and not gives_up_waiting:
        return "wait", None
    if current is not None:
        return "use", current
    if policy == "hard":
        return "blocked", None
    if policy == "skip":
        return "skip", None
    if policy == "optional":
        return "without", None
    return ("fallback", fallback) if fallback is not None else ("blocked", None)


def deadline_of(job: Job, opened_at: datetime) -> datetime | None:
    """When this job stops waiting: the first tick of its deadline after the run was opened. None: never."""
    if job.deadline is None:
        return None
    local = opened_at.astimezone(ZoneInfo(job.deadline.timezone))
    return next(CronSim(job.deadline.cron, local))


def is_late(job: Job, opened_at: datetime, now: datetime) -> bool:
    """Whether this job's deadline has passed."""
    deadline = deadline_of(job, opened_at)
    return deadline is not None and now >= deadline


def _decide_edge(edge: Edge, graph: Graph, run: RunState, upstream: Decision, late: bool) -> EdgeDecision:
    fallback, ageing = _within_shelf_life(graph[edge.upstream], run) if edge.policy == "degrade" else (None, False)
    outlook = upstream.outlook
    resolution, artifact = resolve(edge.policy, outlook, upstream.state.current, late, fallback)
    is_late_upstream = late and outlook == "delivering"
    return EdgeDecision(
        edge, resolution, upstream.state, outlook, is_late_upstream, artifact, ageing and resolution == "fallback"
    )


def _within_shelf_life(upstream: Job, run: RunState) -> tuple[Artifact | None, bool]:
    fallback, shelf = run.fallbacks.get(upstream.job_id), upstream.shelf_life
    if fallback is None or shelf is None:
        return None, False
    age: timedelta = run.moment - fallback.as_of
    if age > shelf.fail:
        return None, False
    return fallback, shelf.warn is not None and age > shelf.warn


def _readiness(decision: EdgeDecision) -> Readiness:
    match decision.resolution:
        case "use" | "fallback" | "without":
            return "run"
        case "wait" | "blocked" | "skip" as other:
            return other


def _wanted(state: JobState, edges: tuple[EdgeDecision, ...]) -> bool:
    """Whether the job should run (again): never attempted, or what it would consume is not what it last consumed.

    A job with an artifact follows gains and changes only, on its follow edges and from its own run; an edge that is new
    in the graph is no change. A job without one takes any difference, pinned or not.
    """
    if state.attempted is None:
        return state.status != "running"
    if state.current is None:
        return any(_readiness(edge) == "run" and _differs(edge, state.attempted) for edge in edges)
    return any(
        edge.edge.on_rerun == "follow"
        and edge.resolution == "use"
        and edge.edge.upstream in state.attempted
        and _differs(edge, state.attempted)
        for edge in edges
    )


def _differs(decision: EdgeDecision, attempted: Inputs | None) -> bool:
    before = (attempted or {}).get(decision.edge.upstream)
    if decision.artifact is None:
        return before is not None
    return not decision.artifact.same_data(before)
