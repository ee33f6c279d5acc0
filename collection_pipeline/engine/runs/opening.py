"""Opening a run: whoever is the first to need it does so, by the same rule."""

from __future__ import annotations

from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.run_ids import RunId, RunIdError
from collection_pipeline.engine.store import UnknownRunError


def open_run(collection: Collection, run_id: RunId) -> None:
    """Open the run if it is new. Raises `RunIdError`, and opens nothing, if its day has not begun."""
    refuse_before_its_day(collection, run_id)
    collection.store.open_run(run_id, collection.timezone, collection.graph, collection.now())


def refuse_before_its_day(collection: Collection, run_id: RunId) -> None:
    """Raise `RunIdError` if the run would be opened before its day. One that is open goes on, in its own zone and also
    after a clock was set back."""
    try:
        run_id.refuse_before_its_day(collection.now(), collection.timezone)
    except RunIdError:
        try:
            collection.store.graph_of(run_id.text)
        except UnknownRunError:
            pass
        else:
            return
        raise
