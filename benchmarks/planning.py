"""The planner on a graph far larger than anybody's: 500 jobs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from statistics import median

from benchmarks.measuring import Figure, seconds
from benchmarks.workload import NOW
from collection_pipeline.engine.planning.edges import Edge
from collection_pipeline.engine.planning.graph import Graph, Job
from collection_pipeline.engine.planning.planner import plan
from collection_pipeline.engine.planning.state import Artifact, JobState, RunState

JOBS = 500


def measure(*, quick: bool) -> Iterator[Figure]:
    """In three states: nothing done, half of it, all of it."""
    graph = _graph()
    for done in (0, JOBS // 2, JOBS):
        state = _state(graph, done)
        taken = [seconds(lambda state=state: plan(graph, state, NOW)) for _ in range(20 if quick else 200)]  # type: ignore[misc]
        yield Figure(f"{JOBS} jobs, {done} of them done", median(taken) * 1e3, "ms", at_most=10)


def _graph() -> Graph:
    """Each job with up to three upstreams among the twenty before it, half of the edges hard."""
    choose = random.Random(0)
    jobs = []
    for number in range(JOBS):
        before = range(max(0, number - 20), number)
        edges = [
            Edge(
                f"job_{upstream}",
                policy=choose.choice(["hard", "hard", "optional"]),
                on_rerun=choose.choice(["follow", "pin"]),
                why="speed",
            )
            for upstream in choose.sample(before, min(len(before), 3))
        ]
        jobs.append(Job(f"job_{number}", tuple(edges)))
    return Graph.build(jobs)


def _state(graph: Graph, done: int) -> RunState:
    artifacts = {job_id: Artifact(job_id, "2026-11-29", 1, NOW, "hash") for job_id in list(graph.jobs)[:done]}
    jobs = {
        job.job_id: JobState(
            "done", current=artifacts[job.job_id], attempted={up: artifacts[up] for up in job.upstreams}
        )
        if job.job_id in artifacts
        else JobState()
        for job in graph
    }
    return RunState("2026-11-29", NOW, NOW, jobs)
