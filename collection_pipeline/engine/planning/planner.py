"""What may run, what waits, what is skipped: one pure function over the state of one run.

Level-triggered: it reads the state as it is, never events, so a missed tick or a restart loses nothing. No clock, no
I/O, no Dagster. The sensor, `collect`, the rerun preview and the gate inside every asset all decide through `plan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from collection_pipeline.engine.planning.edges import Edge, Policy
from collection_pipeline.engine.planning.graph import Graph, Job
from collection_pipeline.engine.planning.lateness import is_late
from collection_pipeline.engine.planning.state import Artifact, Inputs, JobState, RunState, Status, differs

Outlook = Literal["delivering", "blocked", "unavailable", "settled"]
"""What a job promises its consumers: a result to come; none until somebody repairs what blocks it; none by itself, as
it failed or is skipped; or the one that stands."""

Resolution = Literal["use", "fallback", "without", "wait", "blocked", "skip"]
"""What one edge says to its consumer. The first three let it run; see `resolve`."""

Readiness = Literal["run", "wait", "blocked", "skip"]
"""What all edges together say. Skip beats blocked, blocked beats wait, wait beats run."""


_SEVERITY: Mapping[Readiness, int] = {"run": 0, "wait": 1, "blocked": 2, "skip": 3}

_READINESS: Mapping[Resolution, Readiness] = {
    "use": "run",
    "fallback": "run",
    "without": "run",
    "wait": "wait",
    "blocked": "blocked",
    "skip": "skip",
}

_UNTOUCHED = JobState()


def _severity(readiness: Readiness) -> int:
    return _SEVERITY[readiness]


class EdgeDecision(NamedTuple):
    """What one edge says now, and on which facts: the artifact if any, the upstream's state, whether it is late."""

    edge: Edge
    resolution: Resolution
    upstream: JobState
    outlook: Outlook
    late: bool
    artifact: Artifact | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """One job: what its edges say together, whether it wants to run at all, and what it would consume."""

    job_id: str
    state: JobState
    edges: tuple[EdgeDecision, ...]
    readiness: Readiness
    wanted: bool
    outlook: Outlook

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
        """To be marked skipped now."""
        return self.wanted and self.readiness == "skip" and not self.state.in_flight

    @property
    def blocked(self) -> bool:
        """Wants to run and cannot until somebody repairs an upstream."""
        return self.wanted and self.readiness == "blocked" and not self.state.in_flight

    @property
    def status(self) -> Status:
        """The status that the state table should show."""
        if self.state.status == "running":
            return "running"
        if self.skips:
            return "skipped"
        if self.wanted:
            return "pending"
        return "done" if self.state.status == "pending" and self.state.current is not None else self.state.status

    @property
    def outdated_edges(self) -> tuple[EdgeDecision, ...]:
        """The pinned edges whose upstream of the same run has moved on since the job's artifact was built."""
        if self.state.current is None:
            return ()
        return tuple(
            decision
            for decision in self.edges
            if decision.edge.on_rerun == "pin"
            and decision.upstream.current is not None
            and _consumed_other(decision.edge, decision.upstream.current, self.state.attempted)
        )

    @property
    def outdated(self) -> bool:
        """Holds an artifact although a pinned upstream of the same run has moved on since."""
        return bool(self.outdated_edges)


@dataclass(frozen=True, slots=True)
class Plan:
    """The decisions of one run, upstreams first."""

    decisions: Mapping[str, Decision]

    @property
    def requests(self) -> tuple[str, ...]:
        """The jobs to start as one Dagster run: those due now, and those that wait for nothing but them."""
        chosen: dict[str, None] = {}
        for decision in self.decisions.values():
            joins = decision.wanted and decision.readiness == "wait" and not decision.state.in_flight
            waits = (edge.edge.upstream for edge in decision.edges if edge.resolution == "wait")
            if decision.due or (joins and all(upstream in chosen for upstream in waits)):
                chosen[decision.job_id] = None
        return tuple(chosen)

    @property
    def settled(self) -> bool:
        """Nothing is in flight and nothing will start by itself."""
        return not any(decision.outlook == "delivering" or decision.skips for decision in self.decisions.values())


def plan(graph: Graph, run: RunState, now: datetime) -> Plan:
    """Decide every job of one run. Pure: equal arguments give equal plans."""
    decisions: dict[str, Decision] = {}
    for job in graph:
        state = run.jobs.get(job.job_id, _UNTOUCHED)
        late = is_late(job, run.opened_at, now)
        edges = tuple([_decide_edge(edge, graph, run, decisions[edge.upstream], late) for edge in job.edges])
        readiness: Readiness = max((_READINESS[edge.resolution] for edge in edges), key=_severity, default="run")
        wanted = _wanted(state, edges, readiness)
        outlook = _outlook(state, readiness, wanted)
        decisions[job.job_id] = Decision(job.job_id, state, edges, readiness, wanted, outlook)
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
    if policy == "optional":
        return "without", None
    if policy == "degrade" and fallback is not None:
        return "fallback", fallback
    if policy == "skip" and outlook != "blocked":
        return "skip", None
    return "blocked", None


def _decide_edge(edge: Edge, graph: Graph, run: RunState, upstream: Decision, late: bool) -> EdgeDecision:
    fallback = _within_shelf_life(graph[edge.upstream], run) if edge.policy == "degrade" else None
    outlook = upstream.outlook
    resolution, artifact = resolve(edge.policy, outlook, upstream.state.current, late, fallback)
    late_upstream = late and outlook == "delivering"
    return EdgeDecision(edge, resolution, upstream.state, outlook, late_upstream, artifact)


def _within_shelf_life(upstream: Job, run: RunState) -> Artifact | None:
    fallback, shelf = run.fallbacks.get(upstream.job_id), upstream.shelf_life
    if fallback is None or shelf is None or run.moment - fallback.as_of > shelf.fail:
        return None
    return fallback


def _wanted(state: JobState, edges: tuple[EdgeDecision, ...], readiness: Readiness) -> bool:
    """Whether the job should run (again): never attempted, or what it would consume is not what it last consumed.

    A job with an artifact follows gains and changes only, on its follow edges and from its own run; an edge that is new
    in the graph is no change, and it is never skipped: it keeps what it has. A job without one takes any difference,
    pinned or not, an edge gone from the graph included; but what is skipped stays so for as long as its edges say it.
    """
    if readiness == "skip" and (state.current is not None or state.status == "skipped"):
        return False
    attempted = state.attempted
    if attempted is None:
        return state.status == "pending"
    if state.current is None:
        lost = attempted.keys() - {edge.edge.upstream for edge in edges}
        return any(attempted[upstream] is not None for upstream in lost) or any(
            _READINESS[edge.resolution] == "run" and differs(edge.artifact, attempted.get(edge.edge.upstream))
            for edge in edges
        )
    return any(
        edge.edge.on_rerun == "follow"
        and edge.resolution == "use"
        and edge.artifact is not None
        and _consumed_other(edge.edge, edge.artifact, attempted)
        for edge in edges
    )


def _outlook(state: JobState, readiness: Readiness, wanted: bool) -> Outlook:
    if state.in_flight or (wanted and readiness in ("run", "wait")):
        return "delivering"
    if wanted and readiness == "blocked":
        return "blocked"
    if state.status in ("failed", "skipped") or state.current is None:
        return "unavailable"
    return "settled"


def _consumed_other(edge: Edge, artifact: Artifact, attempted: Inputs | None) -> bool:
    """Whether the last attempt read this edge, and not this artifact."""
    return attempted is not None and edge.upstream in attempted and not artifact.same_data(attempted[edge.upstream])
