"""From settings to what a command works on, checked first: wrong use is refused before anything is written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collection_pipeline.cli.group import Refusal
from collection_pipeline.engine.planning.graph import Graph, nearest
from collection_pipeline.engine.run_ids import RunId
from collection_pipeline.engine.visible import shortened

if TYPE_CHECKING:
    from collection_pipeline.engine.collection import Collection
    from collection_pipeline.engine.store import Store
    from collection_pipeline.settings import Settings


class RunIdParameter(click.ParamType[RunId]):
    """A run_id on the command line."""

    name = "run_id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> RunId:  # noqa: ARG002 - click's
        """Raises `RunIdError` for whatever is outside the grammar."""
        return value if isinstance(value, RunId) else RunId.parse(value)


RUN_ID = RunIdParameter()


def settings() -> Settings:
    """The settings of this process. Raises `SettingsError`, as does a fault that the emulator does not know."""
    from collection_pipeline.settings import SettingsError
    from collection_pipeline.settings import settings as read

    found = read()
    if found.source_kind == "emulator" and found.emulator_faults:
        from collection_pipeline.sources.emulator.faults import FaultSyntaxError, parse_faults

        try:
            parse_faults(found.emulator_faults)
        except FaultSyntaxError as error:
            raise SettingsError(f"COLLECTION_EMULATOR_FAULTS: {error}") from error
    return found


def settings_to_collect() -> Settings:
    """The settings for a command that makes jobs run: the queries and the ways out have to be right as well."""
    from collection_pipeline.queries import load_queries
    from collection_pipeline.resources import check_outlets

    found = settings()
    load_queries(found.queries)
    check_outlets(found)
    return found


def today(settings: Settings) -> RunId:
    """The scheduled run of today, in the collection's time zone."""
    from collection_pipeline.resources import now

    return RunId.of_day(now(), settings.timezone)


def open_store(settings: Settings) -> Store:
    """The artifact store. A database that cannot be opened is wrong configuration."""
    from collection_pipeline import resources
    from collection_pipeline.engine.store import StoreUnavailableError

    try:
        return resources.open_store(settings)
    except StoreUnavailableError as error:
        raise Refusal(str(error)) from error


def is_begun(settings: Settings) -> bool:
    """Whether there is a database to look into: looking makes none."""
    from collection_pipeline.engine.store.database import normalise

    url = normalise(settings.database_url.get_secret_value())
    return url.get_backend_name() != "sqlite" or Path(str(url.database)).exists()


def kept_collection(settings: Settings, run_id: RunId | None = None) -> Collection:
    """The collection as far as it is kept in the store, without Dagster and so without the graph of the code.

    With `run_id`, that of a run which is there: raises `UnknownRunError` rather than begin a database.
    """
    from collection_pipeline.engine.store.runs import unknown_run
    from collection_pipeline.resources import collection

    made = collection(Graph(), settings)
    if run_id is not None and not is_begun(settings):
        raise unknown_run(run_id.text)
    store = open_store(settings)
    return replace(made, open_store=lambda: store)


def of_run(collection: Collection, run_id: str) -> Collection:
    """The same collection, with the graph that this run goes by. Raises `UnknownRunError`."""
    return replace(collection, graph=collection.store.graph_of(run_id))


def known_job(job_id: str, known: Iterable[str]) -> str:
    """The job_id, if there is such a job; the refusal has the nearest name."""
    names = list(known)
    if job_id not in names:
        raise Refusal(f"There is no job {shortened(job_id)!r}. {nearest(job_id, names)}")
    return job_id


def instant(moment: datetime | None) -> str | None:
    """An instant for machines: ISO 8601 in UTC."""
    return None if moment is None else moment.isoformat()
