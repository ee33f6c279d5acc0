"""Where a run stands, read only and without Dagster: its state, the plan made on it, and the facts that words need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from collection_pipeline.engine.checks import DEGRADED_INPUTS, OMITTED_INPUTS, calls_covered
from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.planning.flight import LastAttempt, PlannedRun, in_flight
from collection_pipeline.engine.planning.lateness import late_jobs
from collection_pipeline.engine.planning.planner import plan
from collection_pipeline.engine.planning.state import JobState
from collection_pipeline.engine.planning.state import RunState as PlannedState
from collection_pipeline.engine.run_ids import RunId
from collection_pipeline.engine.store import JobView, RunState, RunView
from collection_pipeline.engine.words.explain import Explanation
from collection_pipeline.engine.words.facts import Facts, JobFacts
from collection_pipeline.engine.words.outcomes import ABANDONED, INTERRUPTED


@dataclass(frozen=True, slots=True)
class Standing:
    """One look at a run: the state that was decided on, the words for it, and what the tables show."""

    state: RunState
    explanation: Explanation
    view: RunView

    @property
    def is_shown(self) -> bool:
        """Whether the state table already says what the plan says."""
        plan = self.explanation.plan
        shown = {job.job_id: job.status for job in self.view.jobs if not job.removed}
        planned = {job_id: decision.status for job_id, decision in plan.decisions.items()}
        return shown == planned and plan.settled == (self.view.settled_at is not None)


def standing(collection: Collection, run_id: str, planned: Iterable[PlannedRun] = ()) -> Standing:
    """The run as it stands, decided and ready to be put into words.

    `planned` are the live Dagster runs of this run_id; without them, only running jobs count as in flight.
    """
    now = collection.now()
    graph = collection.graph
    view = collection.store.run_view(run_id)
    attempts = {job.job_id: LastAttempt(job.dagster_run_id, job.outcome) for job in view.jobs}
    flying = in_flight(planned, graph, attempts, late_jobs(graph, view.opened_at, now))
    state = collection.store.run_state(run_id, graph, flying)
    facts = Facts({job.job_id: _facts(job) for job in view.jobs}, view.timezone)
    return Standing(state, Explanation(graph, state, plan(graph, state, now), facts), view)


def refusal_in_new(collection: Collection, run_id: RunId, job_id: str) -> str | None:
    """Why a run that nobody has opened is not opened for this job alone, since that would have to wait there; None if
    it would not. Once open, all of the run would be collected."""
    now = collection.now()
    graph = collection.graph
    state = PlannedState(run_id.text, run_id.moment(collection.timezone), now, dict.fromkeys(graph.jobs, JobState()))
    explanation = Explanation(graph, state, plan(graph, state, now), Facts({}, collection.timezone))
    if explanation.plan.decisions[job_id].readiness == "run":
        return None
    return f"{explanation.refusal(job_id)}. The run was not opened."


def _facts(job: JobView) -> JobFacts:
    inputs = () if job.current is None else job.current.inputs
    retracted = tuple(each.upstream for each in inputs if each.retracted)
    return JobFacts(
        job.reason,
        job.started_at,
        job.finished_at,
        job.dagster_run_id,
        retracted,
        lacks_answers=_lacks_answers(job),
        stopped=job.error_kind in (INTERRUPTED, ABANDONED),
        warnings=_warnings(job),
    )


def _warnings(job: JobView) -> dict[str, str]:
    """Without the words about inputs: whatever failed, is late or skipped upstream alerts already."""
    checks = () if job.current is None else job.current.checks
    said_upstream = (DEGRADED_INPUTS.name, OMITTED_INPUTS.name)
    return {
        each["name"]: each["description"] for each in checks if not each["passed"] and each["name"] not in said_upstream
    }


def _lacks_answers(job: JobView) -> bool:
    """Whether the last attempt made a version, usable or not, with some of its calls answered and others not; or was
    to buy only what such a version lacks, and did not get to make one."""
    if job.latest is None or job.error_kind not in (None, "check"):
        return job.adopted
    calls = calls_covered(job.latest.checks)
    return calls is not None and calls.missing > 0 and calls.answered > 0
