"""What a rerun would set off, found by letting the planner decide hypothetical states: there is no second logic."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from collection_pipeline.engine.counting import counted
from collection_pipeline.engine.planning.edges import Edge
from collection_pipeline.engine.planning.graph import Graph
from collection_pipeline.engine.planning.planner import Decision, plan
from collection_pipeline.engine.planning.state import Artifact, Inputs, JobState, RunState

Effect = Literal["follows", "taken along", "restarts", "starts", "stays pinned", "blocked", "skipped", "unaffected"]
"""What an edge from a rerun job does to its consumer. Taken along: pinned, but the consumer runs for another edge."""


@dataclass(frozen=True, slots=True)
class EdgeEffect:
    """One edge whose upstream would have a new artifact."""

    edge: Edge
    consumer: str
    effect: Effect


@dataclass(frozen=True, slots=True)
class RerunPreview:
    """What follows if a job gets a new, different artifact.

    `decision` is the job's own; unless its readiness is "run" the rerun would be refused, and nothing follows.
    `runs`: the jobs that run, the rerun one first. `outdated`: those that keep an artifact built on older data.
    `credits`: the API cost of `runs`, but for those `uncounted`, whose cost nobody knows.
    """

    decision: Decision
    effects: tuple[EdgeEffect, ...] = ()
    runs: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()
    credits: int = 0
    uncounted: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """The preview for people, one edge a line."""
        lines = [f"{each.edge.upstream} → {each.consumer}: {each.effect}" for each in self.effects]
        if self.outdated:
            lines.append(f"Becomes outdated: {', '.join(self.outdated)}.")
        cost = f"{'at least' if self.uncounted else 'about'} {counted(self.credits, 'API credit')}"
        if self.uncounted:
            cost += f"; not counted: {', '.join(self.uncounted)}"
        lines.append(f"Runs {', '.join(self.runs) or 'nothing'}; {cost}.")
        return lines


def rerun_preview(graph: Graph, run: RunState, job_id: str, now: datetime, cost: Mapping[str, int]) -> RerunPreview:
    """Follow a rerun of `job_id` through the graph, every attempt succeeding with new data.

    `cost`: API credits by job_id; a job that is not named is not counted. What is in flight is taken to succeed first.
    """
    before = plan(graph, run, now).decisions
    if before[job_id].readiness != "run":
        return RerunPreview(before[job_id])
    run = _publish(run, before[job_id], before[job_id].inputs)
    runs = [job_id]
    for job in list(graph)[list(graph.jobs).index(job_id) + 1 :]:
        decision = plan(graph, run, now).decisions[job.job_id]
        if decision.state.in_flight:
            running = decision.state.status == "running" and decision.state.attempted is not None
            run = _publish(run, decision, decision.state.attempted if running else decision.inputs)
            decision = plan(graph, run, now).decisions[job.job_id]
        if decision.due:
            run = _publish(run, decision, decision.inputs)
            if not set(runs).isdisjoint(job.upstreams):
                runs.append(job.job_id)
    after = plan(graph, run, now).decisions
    effects = tuple(
        EdgeEffect(edge, consumer.job_id, _effect(edge, before[consumer.job_id], after[consumer.job_id], runs))
        for upstream in runs
        for consumer, edge in graph.consumers(upstream)
    )
    outdated = tuple(each for each in after if after[each].outdated and not before[each].outdated)
    uncounted = tuple(each for each in runs if each not in cost)
    total = sum(cost.get(each, 0) for each in runs)
    return RerunPreview(before[job_id], effects, tuple(runs), outdated, total, uncounted)


def _publish(run: RunState, decision: Decision, consumed: Inputs | None) -> RunState:
    """The run after this job succeeded with data unlike any other."""
    version = decision.state.current.version + 1 if decision.state.current is not None else 1
    artifact = Artifact(decision.job_id, run.run_id, version, run.moment, f"preview {decision.job_id} {version}")
    return replace(run, jobs={**run.jobs, decision.job_id: JobState("done", False, artifact, consumed)})


def _effect(edge: Edge, before: Decision, after: Decision, runs: Collection[str]) -> Effect:
    if before.job_id in runs:
        if before.state.current is not None:
            return "follows" if edge.on_rerun == "follow" else "taken along"
        return "starts" if before.state.attempted is None else "restarts"
    if after.state.current is not None:
        return "stays pinned" if edge.on_rerun == "pin" else "unaffected"
    if after.readiness in ("blocked", "skip"):
        return "blocked" if after.readiness == "blocked" else "skipped"
    return "unaffected"
