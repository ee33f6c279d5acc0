"""The graph of jobs, checked when it is built: cycles, unknown names and contradictions never reach a run."""

from __future__ import annotations

import difflib
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

from collection_pipeline.engine.declarations import DeclarationError
from collection_pipeline.engine.planning.edges import Edge

_FORMAT = 1
"""Of the stored JSON; a stored graph outlives the code that wrote it."""


class GraphError(DeclarationError):
    """The declared edges do not make a graph; the message names the edges and where they were written."""


@dataclass(frozen=True, slots=True)
class ShelfLife:
    """How old a fallback may be, as_of to the run's moment: past `warn` used with a warning, past `fail` refused."""

    fail: timedelta
    warn: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Deadline:
    """The first tick of `cron` (in `timezone`, an IANA name) after a run was opened ends this job's patience."""

    cron: str
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Job:
    """One node: its edges, how long its artifacts keep, and when it stops waiting for late upstreams."""

    job_id: str
    edges: tuple[Edge, ...] = ()
    shelf_life: ShelfLife | None = None
    deadline: Deadline | None = None

    @property
    def upstreams(self) -> tuple[str, ...]:
        return tuple(edge.upstream for edge in self.edges)


@dataclass(frozen=True)
class Graph:
    """Jobs by id, upstreams first. Build one with `Graph.build`, which refuses what is not a graph."""

    jobs: Mapping[str, Job] = field(default_factory=dict)

    @classmethod
    def build(cls, jobs: Iterable[Job]) -> Graph:
        """Check the declarations and order them upstreams first. Raises `GraphError` that names every edge at fault."""
        by_id: dict[str, Job] = {}
        for job in jobs:
            if job.job_id in by_id:
                raise GraphError(f"Two jobs are called {job.job_id!r}; a job_id names one job.")
            by_id[job.job_id] = job
        problems = [problem for job in by_id.values() for problem in _edge_problems(job, by_id)]
        if problems:
            raise GraphError("\n".join(problems))
        try:
            return cls(_upstreams_first(by_id))
        except CycleError as error:
            raise GraphError(_describe_cycle(_shortest_cycle(by_id), by_id)) from error

    def __iter__(self) -> Iterator[Job]:
        return iter(self.jobs.values())

    def __getitem__(self, job_id: str) -> Job:
        return self.jobs[job_id]

    def __contains__(self, job_id: object) -> bool:
        return job_id in self.jobs

    def consumers(self, job_id: str) -> tuple[tuple[Job, Edge], ...]:
        """The edges that read from `job_id`, each with the job that declares it."""
        return tuple((job, edge) for job in self for edge in job.edges if edge.upstream == job_id)

    def to_json(self) -> str:
        """The graph as one line of JSON, equal for equal graphs: what a run remembers it was opened with."""
        jobs = [_job_to_dict(job) for job in sorted(self, key=lambda job: job.job_id)]
        return json.dumps({"format": _FORMAT, "jobs": jobs}, ensure_ascii=False, separators=(",", ":"), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Graph:
        """The graph that `to_json` wrote. Raises `GraphError` for one that is damaged, or a newer version's."""
        try:
            stored = json.loads(text)
            if stored["format"] == _FORMAT:
                return cls(_upstreams_first({item["job_id"]: _job_from_dict(item) for item in stored["jobs"]}))
        except (ValueError, LookupError, TypeError, ArithmeticError) as error:
            raise GraphError("The stored graph is damaged. Restore the database from a backup.") from error
        raise GraphError(f"The stored graph has format {stored['format']}; this version reads {_FORMAT}. Upgrade.")


def nearest(name: str, known: Iterable[str]) -> str:
    """The sentence that helps with a mistyped name: the closest one, or all there are."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"Did you mean {close[0]!r}?" if close else f"There are: {', '.join(names) or 'none'}."


def _upstreams_first(by_id: Mapping[str, Job]) -> dict[str, Job]:
    # By name where the edges leave it open: a graph that was stored has the order of the one that was declared.
    order = TopologicalSorter({job_id: by_id[job_id].upstreams for job_id in sorted(by_id)}).static_order()
    return {job_id: by_id[job_id] for job_id in order}


def _edge_problems(job: Job, by_id: Mapping[str, Job]) -> Iterator[str]:
    seen: dict[str, Edge] = {}
    for edge in job.edges:
        label = f"{edge.declared_at}: the edge {edge.upstream} → {job.job_id}"
        if edge.upstream == job.job_id:
            yield f"{label} makes the job wait for itself; remove it."
            continue
        if edge.upstream not in by_id:
            yield f"{label} reads from an unknown job. {nearest(edge.upstream, by_id)}"
            continue
        first = seen.setdefault(edge.upstream, edge)
        if first is not edge:
            yield (
                f"{label} ({edge.policy}) is declared twice; the first ({first.policy}) is at {first.declared_at}."
                " Keep one."
            )
            continue
        upstream = by_id[edge.upstream]
        if edge.policy == "hard" and (skipper := _skip_edge(upstream)) is not None:
            yield (
                f"{label} is hard, but {edge.upstream} may be skipped and then never delivers (its edge from"
                f" {skipper.upstream}, {skipper.declared_at}). Make this edge degrade, skip or optional."
            )
        if edge.policy == "degrade" and upstream.shelf_life is None:
            yield (
                f"{label} falls back to earlier runs, but {edge.upstream} has no shelf life. Give that asset"
                " freshness_policy=dg.FreshnessPolicy.time_window(fail_window=…)."
            )


def _skip_edge(job: Job) -> Edge | None:
    return next((edge for edge in job.edges if edge.policy == "skip"), None)


def _shortest_cycle(by_id: Mapping[str, Job]) -> list[str]:
    """A shortest closed path along data flow, as job ids without the repeated end; the first by name.

    Precondition: there is a cycle.
    """
    consumers: dict[str, list[str]] = {job_id: [] for job_id in sorted(by_id)}
    for job_id in consumers:
        for upstream in by_id[job_id].upstreams:
            consumers[upstream].append(job_id)
    best: list[str] = []
    for start in consumers:
        paths = deque([[start]])
        seen = {start}
        while paths:
            path = paths.popleft()
            if best and len(path) >= len(best):
                break
            if start in consumers[path[-1]]:
                best = path
                break
            for following in consumers[path[-1]]:
                if following not in seen:
                    seen.add(following)
                    paths.append([*path, following])
    return best


def _describe_cycle(cycle: list[str], by_id: Mapping[str, Job]) -> str:
    closed = [*cycle, cycle[0]]
    lines = [f"The jobs wait for each other in a circle: {' → '.join(closed)}."]
    for upstream, consumer in pairwise(closed):
        edge = next(edge for edge in by_id[consumer].edges if edge.upstream == upstream)
        lines.append(f"  {upstream} → {consumer}  {edge.policy}  {edge.declared_at}")
    lines.append("Remove one of these edges.")
    return "\n".join(lines)


def _job_to_dict(job: Job) -> dict[str, Any]:
    return {
        "job_id": job.job_id,
        "edges": [
            {"upstream": edge.upstream, "policy": edge.policy, "on_rerun": edge.on_rerun, "why": edge.why}
            for edge in job.edges
        ],
        "shelf_life": job.shelf_life
        and {
            "fail_s": job.shelf_life.fail.total_seconds(),
            "warn_s": None if job.shelf_life.warn is None else job.shelf_life.warn.total_seconds(),
        },
        "deadline": job.deadline and {"cron": job.deadline.cron, "timezone": job.deadline.timezone},
    }


def _job_from_dict(item: dict[str, Any]) -> Job:
    shelf, deadline = item["shelf_life"], item["deadline"]
    return Job(
        item["job_id"],
        tuple(Edge(**edge, declared_at="stored graph") for edge in item["edges"]),
        shelf
        and ShelfLife(
            timedelta(seconds=shelf["fail_s"]), None if shelf["warn_s"] is None else timedelta(seconds=shelf["warn_s"])
        ),
        deadline and Deadline(**deadline),
    )
