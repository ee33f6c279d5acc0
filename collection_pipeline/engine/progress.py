"""Where a run stands: plan it, show what the plan says in the state table, and alert about what went wrong."""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

from collection_pipeline.engine.causes import healed, root_causes
from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.explain import Explanation
from collection_pipeline.engine.flight import PlannedRun
from collection_pipeline.engine.launches import is_over
from collection_pipeline.engine.standing import standing
from collection_pipeline.engine.summary import cause_text


def advance(
    collection: Collection, instance: dg.DagsterInstance, run_id: str, planned: Iterable[PlannedRun] = ()
) -> Explanation:
    """Decide the run and make it so in the state table: statuses, skips, settled or open; alert about what changed.

    Should the run change in between, it is decided again. Writes nothing when the table already says what the plan says.
    """
    while True:
        now_at = standing(collection, run_id, planned)
        explanation = now_at.explanation
        shown = {job.job_id: job.status for job in now_at.view.jobs}
        wanted = {job_id: decision.status for job_id, decision in explanation.plan.decisions.items()}
        if shown == wanted and explanation.plan.settled == now_at.view.settled:
            return explanation
        reasons = {job_id: explanation.reason(job_id) for job_id in explanation.plan.decisions}
        written = collection.store.show_statuses(now_at.state, explanation.plan, collection.now(), reasons)
        if written.applied:
            for job_id in written.skipped:
                instance.report_runless_asset_event(
                    dg.AssetObservation(job_id, partition=run_id, description=reasons[job_id])
                )
            _alert(collection, explanation)
            return explanation


def _alert(collection: Collection, explanation: Explanation) -> None:
    """Announce the episodes that this state of the run opens or heals, each once."""
    store = collection.store
    open_keys = store.open_episodes()
    bad = {cause.episode(open_keys): cause_text(explanation, cause) for cause in root_causes(explanation.plan)}
    good = [key for key in open_keys if key not in bad and healed(explanation.plan, key)]
    transitions = store.episode_transitions(explanation.run.run_id, bad, good, collection.now())
    if transitions:
        collection.alert(store, transitions)


def release_abandoned(collection: Collection, instance: dg.DagsterInstance, run_id: str) -> None:
    """Fail every job of a run whose holder can no longer finish it: a crashed process leaves `running` behind."""
    for running in collection.store.running(run_id):
        if is_over(instance, running.holder):
            reason = f"{running.holder} ended without finishing it"
            collection.store.fail_abandoned(run_id, running.job_id, running.holder, reason, collection.now())
