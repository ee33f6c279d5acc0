"""The gate in the consumer: every way to launch a job meets the same decision when it starts, in the same words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from collection_pipeline.engine.planning.graph import Graph
from collection_pipeline.engine.planning.planner import plan
from collection_pipeline.engine.planning.state import Inputs, RunState


class NotReadyError(Exception):
    """The job may not run now: it waits, is blocked or is skipped. Nothing was written."""


class RefusedError(Exception):
    """The job may not run now; the message says what is missing, what was kept and what to type."""


class NothingToDoError(Exception):
    """An automatic launch found that the job no longer wants to run: what it would consume, it has consumed."""


def gate(graph: Graph, job_id: str, *, automatic: bool, now: datetime) -> Callable[[RunState], Inputs]:
    """The decision for one start of one job, to be taken inside the claim's transaction.

    `automatic` launches (schedule, sensor, executor, `collect run`) run only what the planner wants; a person's run if
    they can.
    """

    def decide(state: RunState) -> Inputs:
        decision = plan(graph, state, now).decisions[job_id]
        is_retry = decision.state.status == "running"
        if automatic and not decision.wanted and not is_retry:
            raise NothingToDoError(job_id)
        if decision.readiness != "run":
            raise NotReadyError(job_id)
        return decision.inputs

    return decide
