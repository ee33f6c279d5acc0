"""Where a run stands: plan it, show what the plan says in the state table, and alert about what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import monotonic

import dagster as dg

from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.logs import log_of
from collection_pipeline.engine.planning.causes import healed, root_causes
from collection_pipeline.engine.planning.flight import PlannedRun
from collection_pipeline.engine.runs.standing import Standing, standing
from collection_pipeline.engine.store import StoreError, Transition
from collection_pipeline.engine.words.explain import Explanation
from collection_pipeline.engine.words.summary import cause_text

log = log_of("alerts")

ANNOUNCING_S = 10.0
"""A look spends no more than this on messages and begins none after it: each may wait long for a channel that does not
answer, and Dagster gives a tick of the sensor 60 seconds."""


def advance(
    collection: Collection,
    instance: dg.DagsterInstance,
    run_id: str,
    planned: Iterable[PlannedRun] = (),
    alert: Callable[[Sequence[Transition]], None] | None = None,
) -> Explanation:
    """Decide the run and make it so in the state table: statuses, skips, settled or open; alert about what changed.

    Should the run change meanwhile, it is decided again. Writes nothing when the table already says what the plan says.
    `alert` takes the alerts instead of the channels, for whoever has more to decide first.
    """
    found = standing(collection, run_id, planned)
    while not found.is_shown and not _show(collection, instance, found):
        found = standing(collection, run_id, planned)
    transitions = _transitions(collection, found.explanation)
    if transitions:
        (alert or collection.alert)(transitions)
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


def _transitions(collection: Collection, explanation: Explanation) -> Sequence[Transition]:
    """The episodes that this state of the run opens or heals, each once."""
    store, warnings = collection.store, explanation.facts.warnings
    open_keys = list(store.open_episodes())
    bad = {
        cause.episode(open_keys): cause_text(explanation, cause) for cause in root_causes(explanation.plan, warnings)
    }
    good = [key for key in open_keys if key not in bad and healed(explanation.plan, key, warnings)]
    return store.episode_transitions(explanation.run.run_id, bad, good, collection.now())


def announce(collection: Collection, transitions: Sequence[Transition] = ()) -> None:
    """Announce these, and then what did not get out before: a channel was down, or the process ended. Never raises.

    What there is no time for is overdue in a minute.
    """
    give_up = monotonic() + ANNOUNCING_S
    try:
        overdue = collection.store.take_overdue(collection.now())
    except StoreError as error:
        log.warning("Alerts that did not get out are left to the next look: %s", error)
        overdue = []
    for transition in (*transitions, *overdue):
        if monotonic() < give_up:
            collection.alert([transition])


def take_graph(collection: Collection, run_id: str, *, even_if_settled: bool = False) -> None:
    """Give a run the graph of today. A settled one stays as it is until somebody reruns something in it."""
    store, today = collection.store, collection.graph
    if store.goes_by(run_id, today):
        return
    if even_if_settled:
        store.reopen(run_id)
    store.adopt_graph(run_id, today)
