"""Where a run stands: plan it, show what the plan says in the state table, and alert about what went wrong."""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.planning.causes import healed, root_causes
from collection_pipeline.engine.planning.flight import PlannedRun
from collection_pipeline.engine.runs.standing import Standing, standing
from collection_pipeline.engine.words.explain import Explanation
from collection_pipeline.engine.words.summary import cause_text


def advance(
    collection: Collection, instance: dg.DagsterInstance, run_id: str, planned: Iterable[PlannedRun] = ()
) -> Explanation:
    """Decide the run and make it so in the state table: statuses, skips, settled or open; alert about what changed.

    Should the run change meanwhile, it is decided again. Writes nothing when the table already says what the plan says.
    """
    found = standing(collection, run_id, planned)
    while not found.is_shown and not _show(collection, instance, found):
        found = standing(collection, run_id, planned)
    _alert(collection, found.explanation)
    return found.explanation


def _show(collection: Collection, instance: dg.DagsterInstance, found: Standing) -> bool:
    """Write the plan into the state table; False, and nothing written, if the run changed since it was looked at."""
    explanation = found.explanation
    reasons = {job_id: explanation.reason(job_id) for job_id in explanation.plan.decisions}
    shown = collection.store.show_statuses(found.state, explanation.plan, collection.now(), reasons)
    for job_id in shown.skipped:
        instance.report_runless_asset_event(
            dg.AssetObservation(job_id, partition=found.state.run_id, description=reasons[job_id])
        )
    return shown.applied


def _alert(collection: Collection, explanation: Explanation) -> None:
    """Announce the episodes that this state of the run opens or heals, each once."""
    store, warnings = collection.store, explanation.facts.warnings
    open_keys = list(store.open_episodes())
    bad = {
        cause.episode(open_keys): cause_text(explanation, cause) for cause in root_causes(explanation.plan, warnings)
    }
    good = [key for key in open_keys if key not in bad and healed(explanation.plan, key, warnings)]
    transitions = store.episode_transitions(explanation.run.run_id, bad, good, collection.now())
    if transitions:
        collection.alert(transitions)
    announce_again(collection)


def announce_again(collection: Collection) -> None:
    """Announce what was to be announced and did not get out: a channel was down, or the process ended before."""
    overdue = collection.store.take_overdue(collection.now())
    if overdue:
        collection.alert(overdue)


def take_graph(collection: Collection, run_id: str, *, even_if_settled: bool = False) -> None:
    """Give a run the graph of today. A settled one stays as it is until somebody reruns something in it."""
    store, today = collection.store, collection.graph
    if store.graph_of(run_id).to_json() == today.to_json():
        return
    if even_if_settled:
        store.reopen(run_id)
    store.adopt_graph(run_id, today)
